#include "scheduler/kube/client/bind_pod.h"

#include <nlohmann/json.hpp>

#include "scheduler/kube/client/json_body.h"
#include "scheduler/kube/client/resource_path.h"

namespace mortise::kube {

Done bind_pod(ApiClient& client, const Binding& binding, const CallOptions& call) {
  nlohmann::json body = {
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata", {{"namespace", binding.ns}, {"name", binding.pod}, {"uid", binding.uid}}},
      {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", binding.node}}},
  };
  if (!binding.annotations.empty()) body["metadata"]["annotations"] = binding.annotations;
  return done_of(
      client.post(resource_path("/api/v1", binding.ns, "pods", binding.pod, "binding"), to_text(body), call));
}

}  // namespace mortise::kube
