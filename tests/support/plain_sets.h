#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/topology/device_sets.h"

namespace mortise::test {

/// Everything that two sets of equal size are compared by before their indices; larger is better.
using PlainMerit = std::vector<std::int64_t>;

/// A set's values, looked up by trying: the ring by every order of its GPUs.
topology::SetValue plain_value(const topology::PairMatrix& pairs, topology::GpuSet set);

/// The merit of taking `set` from `free` under an objective other than kNvidia.
PlainMerit plain_merit(const topology::PairMatrix& pairs, const std::vector<int>& nic_distance,
                       topology::Objective objective, topology::GpuSet free, topology::GpuSet set);

/// The best set by trying all; the first in the order of ascending lists among equals.
topology::GpuSet plain_best(const topology::PairMatrix& pairs, const std::vector<int>& nic_distance,
                            topology::Objective objective, topology::GpuSet free, int count);

/// go-gpuallocator's best-effort policy by listing every division of the free GPUs, for machines small enough. `free`
/// is in the order in which kubelet names the GPUs.
topology::PluginPick plain_plugin(const topology::PairMatrix& scores, const std::vector<int>& free,
                                  topology::GpuSet required, int count);

}  // namespace mortise::test
