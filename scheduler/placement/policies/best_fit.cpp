#include "scheduler/placement/policies/policies.h"
#include "scheduler/placement/policies/published.h"

namespace mortise::placement {

long best_fit_raw(const NodeState& state, const PodShape& pod) {
  const auto cpu_after = static_cast<double>(state.cpu_free - pod.cpu);
  const auto gpu_after = static_cast<double>(state.milli_free() - pod.gpu_total());
  return static_cast<long>(100 * (1 - (0.5 * cpu_after / kStudyMaxCpu + 0.5 * gpu_after / kStudyMaxGpu)));
}

namespace {
class BestFit final : public Policy {
 public:
  Score score(const Candidate& node, const PodShape& pod) const override {
    return published_score(best_fit_raw(node.state, pod));
  }
};
}  // namespace

Result<std::unique_ptr<Policy>> make_best_fit(PolicyOptions& options, const TypicalPods&) {
  return options.finish(std::make_unique<BestFit>());
}

}  // namespace mortise::placement
