#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"
#include "scheduler/placement/cluster_state.h"

namespace mortise::placement {

/// A pod on the node, as a possible victim.
struct EvictablePod {
  AllocationId allocation;
  std::int32_t priority = 0;
  Nanoseconds running = 0;              ///< since it started; 0: it has not
  bool proposed = false;                ///< the caller would evict it anyway
  std::vector<std::uint32_t> budgets;   ///< those it is under, as indexes of VictimPool::budgets
  std::optional<std::uint32_t> gang{};  ///< the running gang it is a member of, as index of VictimPool::gangs
  std::uint32_t role = 0;               ///< in its gang, as index of EvictableGang::spare_of_role
};

/// A gang of which members are possible victims: at most so many of them, or all.
struct EvictableGang {
  std::int32_t spare = 0;                     ///< members above its minimum
  std::vector<std::int32_t> spare_of_role{};  ///< likewise of each role
};

/// Who may have to go. All of a gang's members have the same priority, and all that hold a place are in it.
struct VictimPool {
  std::vector<EvictablePod> pods;     ///< only those of lower priority are ever taken
  std::vector<std::int64_t> budgets;  ///< how many evictions each still allows
  std::vector<EvictableGang> gangs;
};

struct EvictionQuestion : VictimPool {
  ShapeId pod;  ///< what asks for room
  std::int32_t priority = 0;
  NodeId node;  ///< pods on other nodes go only along with their gang
};

/// What an eviction costs; compared field by field. No pod can be added without a rise, but that a pod on a node where
/// nothing was needed before may be needed then.
struct EvictionCost {
  std::int64_t pdb_violations = 0;
  std::int64_t highest_priority = std::numeric_limits<std::int64_t>::min();
  std::int64_t elsewhere = 0;  ///< pods on nodes where nothing is needed, that go because the rest of their gang does
  /// Each counted from the lowest priority there is, as kube-scheduler does: so many pods of negative priority are no
  /// bargain.
  std::int64_t priority_sum = 0;
  std::int64_t milli_gpu_seconds = 0;  ///< that the victims have worked
  std::int64_t not_proposed = 0;
  std::int64_t pods = 0;
  friend auto operator<=>(const EvictionCost&, const EvictionCost&) = default;
};

struct Eviction {
  std::vector<std::size_t> victims;  ///< indexes of VictimPool::pods; the most important first. None: it fits
  EvictionCost cost;
  bool cheapest = true;  ///< false: the search was cut short, a cheaper one may exist
};

/// How much a search may look at. Shared by the questions of one request.
struct EvictionBudget {
  std::int64_t looks = std::int64_t{1} << 19;  ///< one for a set of pods, kLooksPerTrial for one tried on the cluster
};
inline constexpr std::int64_t kLooksPerTrial = 8;

/// A search that looks at 2^kExactVictims sets has seen all of so many pods; those of larger nodes end there.
inline constexpr int kExactVictims = 16;

/// Why the node does not take a pod of this shape now; kNone: it does.
Reason node_reason(const ClusterState& cluster, NodeId node, ShapeId pod);

/// The cheapest set of pods without which the node takes the pod: by count, and as kubelet and the topology of what is
/// left decide. Sets are tried on the cluster itself, which is as before afterwards. Empty: no set does.
std::optional<Eviction> cheapest_eviction(ClusterState& cluster, const EvictionQuestion& question,
                                          EvictionBudget& budget);

/// kube-scheduler's order among victims: by priority, then the one that started first.
bool more_important(const EvictablePod& a, const EvictablePod& b);

/// The pods, and all members of gangs that would be cut below their minimum without them. Ascending.
std::vector<std::size_t> with_their_gangs(const VictimPool& pool, std::vector<std::size_t> victims);

/// What evicting these costs, without `elsewhere`.
EvictionCost eviction_cost(const ClusterState& cluster, const VictimPool& pool, std::span<const std::size_t> victims);

}  // namespace mortise::placement
