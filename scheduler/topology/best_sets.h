#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "scheduler/topology/gpu_set.h"
#include "scheduler/topology/set_values.h"

namespace mortise::topology {

/// What sets are compared by first, second and third; larger is better.
using SetMerit = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

/// The best set for every set of free GPUs and every size. Among sets of equal merit, in this order:
/// the rest of the free GPUs has the better best set of 8, then of 4, then of 2 (any set is better than none), then the
/// larger total; the smaller sum of NIC distances; the first in the order of ascending lists.
class BestSets {
 public:
  /// `nic_distance` is empty or holds one number per GPU.
  BestSets(const SetValues& values, SetMerit (*merit)(const SetValue&), std::span<const int> nic_distance);

  /// 0 when `free` has less than `count` GPUs. `free` holds no others than the machine's.
  GpuSet best(GpuSet free, int count) const {
    if (count < 1 || count > gpus_) return 0;
    return sets_[free * sizes_ + static_cast<std::size_t>(count)];
  }

 private:
  int gpus_;
  std::size_t sizes_;                // 0..gpus
  std::vector<std::uint16_t> sets_;  // by free set, by size
};

}  // namespace mortise::topology
