#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/topology/gpu_set.h"
#include "scheduler/topology/pair_matrix.h"
#include "scheduler/topology/set_values.h"

namespace mortise::topology {

/// What the plugin answers. `fails`: its choice holds some of the padding it works with, and it stops there; kubelet
/// then refuses the pod. Without a set and without failure it has no preference.
struct PluginPick {
  GpuSet set = 0;
  bool fails = false;
  friend bool operator==(const PluginPick&, const PluginPick&) = default;
};

/// Every answer of the plugin for one question, whatever the order in which kubelet names the free GPUs (it names
/// them in none). `may_fail` errs on the side of true where sets tie.
struct PluginOutcomes {
  std::vector<GpuSet> sets;  ///< in the order of ascending lists
  bool may_fail = false;
};

/// What NVIDIA's device plugin prefers: the best-effort policy of go-gpuallocator v0.6.0 for whole GPUs.
///
/// The policy looks at every way to divide the free GPUs into sets of the asked size (one of them filled up with
/// padding when they do not divide), takes the division with the highest sum of pair scores, and in it the set with
/// the highest. The same is found here by dynamic programming over sets.
class PluginSets {
 public:
  /// `values` are those of the pair scores.
  explicit PluginSets(const SetValues& values);

  /// The answer when the free GPUs, all of them of this machine, are named in ascending order.
  PluginPick pick(GpuSet free, int count) const {
    if (count < 1 || count > gpus_ || size_of(free) < count) return {};
    const GpuSet set = best_[slot(free, count)];
    return size_of(set) == count ? PluginPick{set, false} : PluginPick{0, true};
  }
  /// With GPUs that have to be in the set.
  PluginPick pick(GpuSet free, GpuSet required, int count) const;

  /// All possible answers to that question.
  PluginOutcomes outcomes(GpuSet free, GpuSet required, int count) const;

 private:
  std::size_t slot(GpuSet set, int size) const { return set * sizes_ + static_cast<std::size_t>(size); }
  void divide(GpuSet free);
  void keep_best(GpuSet free);
  std::vector<GpuSet> parts_of(GpuSet free, int size) const;
  std::vector<GpuSet> parts_with(GpuSet part, GpuSet free) const;
  PluginPick choose(std::vector<GpuSet> parts, GpuSet required, int count) const;
  std::vector<GpuSet> best_parts(GpuSet free, GpuSet required, int members, int count) const;

  int gpus_;
  std::size_t sizes_;                 // 0..gpus
  std::vector<std::int32_t> scores_;  // by set: the sum over its pairs
  // By set and size, for the first of the best divisions of the set into parts of that size:
  std::vector<std::int32_t> totals_;
  std::vector<std::uint16_t> first_;  // its part with the lowest GPU
  std::vector<std::uint16_t> best_;   // the part that is chosen
  // Over all of the best divisions: the least that the highest score of a part can be.
  std::vector<std::int32_t> least_top_;
};

}  // namespace mortise::topology
