#include <algorithm>

#include "scheduler/base/rng.h"
#include "scheduler/placement/policies/policies.h"

namespace mortise::placement {

namespace {
class Random final : public Policy {
 public:
  Score score(const Candidate&, const PodShape&) const override { return 0; }
  TieRule tie_rule() const override { return TieRule::kRandom; }

  int share_device(const Candidate& node, const PodShape& pod, std::uint64_t draw) const override {
    const auto free = node.state.free_devices();
    const auto enough =
        std::count_if(free.begin(), free.end(), [&](std::int16_t left) { return left >= pod.gpu_milli; });
    auto skip = scale_draw(mix64(draw), static_cast<std::uint64_t>(enough));
    int device = 0;
    for (;; ++device) {
      if (free[static_cast<std::size_t>(device)] >= pod.gpu_milli && skip-- == 0) return device;
    }
  }
};
}  // namespace

Result<std::unique_ptr<Policy>> make_random(PolicyOptions& options, const TypicalPods&) {
  return options.finish(std::make_unique<Random>());
}

}  // namespace mortise::placement
