#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/hints.h"
#include "scheduler/topology/kubelet_config.h"

namespace mortise::topology {

/// The NUMA nodes of a machine as the Topology Manager sees them.
struct NumaNodes {
  NumaMask all = 0;
  /// distances[id][other id]; needed for prefer-closest-numa-nodes only.
  std::vector<std::vector<std::uint32_t>> distances;
};

struct Merged {
  NumaMask affinity = kAnyNuma;
  bool preferred = false;
  bool admit = false;

  friend bool operator==(const Merged&, const Merged&) = default;
};

/// Finds the hint that kubelet's Topology Manager finds, without walking through its Cartesian product of hints.
///
/// Kubelet compares candidates by a total order on (preferred, mask), so the order of its walk is of no meaning and
/// the winner is the best mask that *some* combination reaches:
///  - a preferred mask must be offered, preferred, by every resource that has an opinion: an intersection of lists;
///  - without such a mask the candidates are all non-empty intersections of one hint per resource. The set of
///    reachable intersections is computed list by list as an AND-convolution over the 2^n masks, which costs
///    n * 2^n per list instead of the product of the lengths.
/// Keeps its working memory between calls; one object per thread.
class HintMerger {
 public:
  /// More NUMA nodes than this in the hints of one decision are refused: kubelet enumerates all their subsets.
  static constexpr int kMaxHintNodes = 16;

  /// `policy` must not be none. Every mask must lie within `nodes.all`.
  Result<Merged> merge(const KubeletConfig& config, const NumaNodes& nodes, std::span<const HintList> lists);

 private:
  using Counts = std::vector<std::int64_t>;

  bool better(NumaMask a, NumaMask b) const;
  bool better_unpreferred(NumaMask a, NumaMask b) const;
  std::uint64_t distance_sum(NumaMask mask) const;
  NumaMask best_equal_preferred(std::span<const HintList> lists);
  NumaMask best_reachable(std::span<const HintList> lists, bool preferred_only);
  void intersect_with(const HintList& list, bool preferred_only);
  std::uint32_t compact(NumaMask mask) const;
  NumaMask expand(std::uint32_t compact_mask) const;

  const NumaNodes* nodes_ = nullptr;
  bool closest_ = false;
  int wanted_width_ = 0;
  std::vector<int> ids_;  ///< NUMA nodes named by the hints; bit i of a compact mask is ids_[i]
  Counts reached_;        ///< by compact mask: whether some combination so far intersects to it
  Counts offered_;
  Counts agreed_;
};

}  // namespace mortise::topology
