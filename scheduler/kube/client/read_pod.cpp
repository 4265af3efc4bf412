#include "scheduler/kube/client/read_pod.h"

#include "scheduler/kube/client/resource_path.h"

namespace mortise::kube {

Answer<Pod> read_pod(ApiClient& client, const std::string& ns, const std::string& name, const CallOptions& call) {
  return answer_of<Pod>(client.get(resource_path("/api/v1", ns, "pods", name), call), parse_pod);
}

}  // namespace mortise::kube
