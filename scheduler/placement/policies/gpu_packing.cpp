#include <algorithm>
#include <array>

#include "scheduler/placement/policies/policies.h"
#include "scheduler/placement/policies/published.h"

namespace mortise::placement {

namespace {
// Prefers GPUs already in use, then free GPUs of nodes in use, then idle nodes.
class GpuPacking final : public Policy {
 public:
  Score score(const Candidate& node, const PodShape& pod) const override {
    if (!pod.wants_gpu()) return published_score(0);
    const long free = node.state.whole_free();
    constexpr long kThird = 33;
    constexpr long kHalf = 50;
    if (free == node.state.devices) return published_score(std::max(kThird - free, free));
    const auto [whole_taken, tenths] = tightest_devices(node.state, pod);
    if (whole_taken > 0) return published_score(std::max(kHalf - whole_taken, kThird));
    return published_score(std::max(100 - tenths / 10, kHalf));
  }

 private:
  struct Taken {
    long whole;   // wholly free devices among them
    long tenths;  // sum over them of what is left, in hundredths of a GPU, rounded down each
  };

  // The devices with the least left that suffice. Shares differ only in what is left, so counting by it is enough.
  static Taken tightest_devices(const NodeState& state, const PodShape& pod) {
    std::array<std::int16_t, kMaxDevices> left;
    const auto free = state.free_devices();
    const auto end = std::copy_if(free.begin(), free.end(), left.begin(),
                                  [&](std::int16_t milli) { return milli >= pod.gpu_milli; });
    std::sort(left.begin(), end);
    Taken taken{0, 0};
    for (auto device = left.begin(); device != left.begin() + pod.gpus; ++device) {
      taken.whole += *device == kWholeGpu ? 1 : 0;
      taken.tenths += *device / 10;
    }
    return taken;
  }
};
}  // namespace

Result<std::unique_ptr<Policy>> make_gpu_packing(PolicyOptions& options, const TypicalPods&) {
  return options.finish(std::make_unique<GpuPacking>());
}

}  // namespace mortise::placement
