#include "scheduler/kube/client/evict_pod.h"

#include <nlohmann/json.hpp>

#include "scheduler/kube/client/json_body.h"
#include "scheduler/kube/client/resource_path.h"

namespace mortise::kube {

Done evict_pod(ApiClient& client, const std::string& ns, const std::string& pod, const std::string& uid,
               const CallOptions& call) {
  const nlohmann::json body = {
      {"apiVersion", "policy/v1"},
      {"kind", "Eviction"},
      {"metadata", {{"namespace", ns}, {"name", pod}}},
      {"deleteOptions", {{"preconditions", {{"uid", uid}}}}},
  };
  return done_of(client.post(resource_path("/api/v1", ns, "pods", pod, "eviction"), to_text(body), call));
}

}  // namespace mortise::kube
