#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/topology/device_sets.h"
#include "scheduler/topology/gpu_set.h"

namespace mortise::placement {

/// How good sets of GPUs of a machine are, and what is left beside them; in thousandths.
class SetQuality {
 public:
  static constexpr std::int64_t kFull = 1000;

  /// `sets` must outlive it. By kNvidia sets are chosen, but not judged: they are judged by bottleneck.
  SetQuality(const topology::DeviceSets& sets, topology::Objective objective);

  /// Bandwidth of the set over the best of its size on the machine. Full for less than two GPUs.
  std::int64_t ratio(topology::GpuSet set) const;
  /// How fast the best 2, 4 and 8 of these GPUs are, over the best that as many free GPUs can leave.
  std::int64_t rest(topology::GpuSet free) const;

 private:
  std::int64_t speed(topology::GpuSet set) const;
  std::int64_t offers(topology::GpuSet free) const;

  const topology::DeviceSets& sets_;
  topology::Objective objective_;
  std::vector<std::int64_t> best_speed_;   // by size
  std::vector<std::int64_t> best_offers_;  // by number of free GPUs
};

}  // namespace mortise::placement
