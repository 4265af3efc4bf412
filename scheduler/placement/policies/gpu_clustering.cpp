#include "scheduler/placement/policies/policies.h"
#include "scheduler/placement/policies/published.h"

namespace mortise::placement {

namespace {
// Nodes that run only pods of the same kind (a share, or the same number of GPUs) first, then mixed ones that run
// it, then nodes without GPU pods; the fuller the better within each.
class GpuClustering final : public Policy {
 public:
  Score score(const Candidate& node, const PodShape& pod) const override {
    if (!pod.wants_gpu()) return published_score(0);
    constexpr long kLargestNode = 8000;  // milli-GPU, whatever the size of the node
    const long fullness = 25 * (kLargestNode - static_cast<long>(node.state.milli_free())) / kLargestNode;
    const GpuPodKinds mine = gpu_pod_kind(pod.gpus, pod.gpu_milli);
    if (node.state.kinds == mine) return published_score(fullness + 75);
    if ((node.state.kinds & mine) != 0) return published_score(fullness + 50);
    if (node.state.kinds == 0) return published_score(fullness + 25);
    return published_score(fullness);
  }
};
}  // namespace

Result<std::unique_ptr<Policy>> make_gpu_clustering(PolicyOptions& options, const TypicalPods&) {
  return options.finish(std::make_unique<GpuClustering>());
}

}  // namespace mortise::placement
