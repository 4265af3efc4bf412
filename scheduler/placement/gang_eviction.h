#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/gang_planner.h"
#include "scheduler/placement/preemption.h"

namespace mortise::placement {

/// Who would have to go so that a gang fits as a whole.
struct GangEvictionQuestion : VictimPool {
  const GangRequest* gang = nullptr;
  std::int32_t priority = 0;
};

struct GangEviction {
  std::vector<std::size_t> victims;  ///< indexes of VictimPool::pods, the most important first. None: it fits
  GangPlan plan;                     ///< where everybody goes once they are gone
  EvictionCost cost;
  bool cheapest = true;  ///< false: the search was cut short, a cheaper one may exist
};

/// How much one search may look at. A plan costs kStepsPerPlan and two for each node.
struct GangEvictionBudget {
  std::int64_t steps = std::int64_t{1} << 19;
};
inline constexpr std::int64_t kStepsPerPlan = 1024;

/// The cheapest pods without which the whole gang fits, as EvictionCost orders them: of up to kExactVictims that may go
/// all sets are compared as long as the budget lasts. With more, those of the lowest cost are taken one after another
/// until the gang fits, and then each spared that its plan can do without. Pods are taken off the cluster itself, which
/// is as before afterwards. Empty: it would not fit whoever goes.
std::optional<GangEviction> cheapest_gang_eviction(ClusterState& cluster, GangPlanner& planner,
                                                   const GangEvictionQuestion& question, GangEvictionBudget& budget);

}  // namespace mortise::placement
