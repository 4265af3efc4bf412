#include "scheduler/placement/policy.h"

namespace mortise::placement {

int Policy::share_device(const Candidate& node, const PodShape& pod, std::uint64_t) const {
  const auto free = node.state.free_devices();
  int best = -1;
  for (std::size_t d = 0; d < free.size(); ++d) {
    if (free[d] < pod.gpu_milli) continue;
    if (best < 0 || free[d] < free[static_cast<std::size_t>(best)]) best = static_cast<int>(d);
  }
  return best;
}

}  // namespace mortise::placement
