#pragma once

#include <cstdint>
#include <string>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/domains.h"
#include "scheduler/placement/gang.h"
#include "scheduler/placement/placement_quality.h"
#include "scheduler/placement/policy.h"

namespace mortise::placement {

/// Places gangs: all of a gang at once, on the cluster as it is, or nobody. The same cluster, request, policy and seed
/// give the same plan. Changes no allocation. Externally synchronised.
///
/// Among the plans there are, one is taken with, in this order,
///   1. as many members as have room together, if not all of them have,
///   2. the finest level of which one domain holds them all; levels finer than the preferred one count as that one,
///   3. the fewest domains of the next finer level, and then of each finer one,
///   4. the tightest domain: the one with the fewest free GPUs left,
///   5. the fewest nodes,
///   6. the best-joined GPUs, then what the policy prefers, then the nodes' ranks, among nodes with as much room.
class GangPlanner {
 public:
  /// All must outlive the planner.
  GangPlanner(ClusterState& cluster, Domains& domains, const Policy& policy, std::uint64_t seed)
      : cluster_(cluster), domains_(domains), policy_(policy), seed_(seed) {}

  GangDecision plan(const GangRequest& request);

 private:
  ClusterState& cluster_;
  Domains& domains_;
  const Policy& policy_;
  std::uint64_t seed_;
  QualityMeter quality_;
};

/// What to say of a gang whose preferred level the cluster does not have, for it is planned as if it named none; empty:
/// the cluster has the level, or none is preferred. As of the last refresh of the domains.
std::string preference_left_out(const std::string& preferred_level, const Domains& domains);

}  // namespace mortise::placement
