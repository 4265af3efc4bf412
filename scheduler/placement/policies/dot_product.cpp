#include "scheduler/placement/policies/policies.h"
#include "scheduler/placement/policies/published.h"

namespace mortise::placement {

namespace {
class DotProduct final : public Policy {
 public:
  Score score(const Candidate& node, const PodShape& pod) const override {
    const double cpu_free = static_cast<double>(node.state.cpu_free) / kStudyMaxCpu;
    const double gpu_free = static_cast<double>(node.state.milli_free()) / kStudyMaxGpu;
    const double cpu = static_cast<double>(pod.cpu) / kStudyMaxCpu;
    const double gpu = static_cast<double>(pod.gpu_total()) / kStudyMaxGpu;
    return published_score(static_cast<long>(100 * (1 - (cpu_free * cpu + gpu_free * gpu) / 2)));
  }
};
}  // namespace

Result<std::unique_ptr<Policy>> make_dot_product(PolicyOptions& options, const TypicalPods&) {
  return options.finish(std::make_unique<DotProduct>());
}

}  // namespace mortise::placement
