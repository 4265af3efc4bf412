#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/placement/domains.h"
#include "scheduler/placement/gang_planner.h"
#include "sim/replay.h"

namespace mortise::sim {

/// Plans the gangs of a trace in one run, and counts what became of them.
class GangPlacer {
 public:
  /// The cluster is the one that `spec.cluster` describes. Both must outlive the placer.
  GangPlacer(const ReplaySpec& spec, placement::ClusterState& cluster, std::unique_ptr<placement::Policy> policy)
      : workload_(spec.workload),
        policy_(std::move(policy)),
        domains_(make(spec, cluster)),
        planner_(cluster, domains_, *policy_, spec.seed) {}

  /// An error when a gang asks for a level that the cluster does not have.
  Status check() const;

  /// All its members on the cluster as it is, or nobody. The plan's indexes are those of the gang's roles.
  placement::GangDecision plan(const traces::Arrival& arrival);

  GangFigures figures() const;

 private:
  static placement::Domains make(const ReplaySpec& spec, const placement::ClusterState& cluster);
  void count(const placement::GangPlan& plan);

  const Workload& workload_;
  std::unique_ptr<placement::Policy> policy_;
  placement::Domains domains_;
  placement::GangPlanner planner_;
  std::int64_t arrived_ = 0;
  std::int64_t placed_ = 0;
  std::vector<std::int64_t> domains_used_;  // by level; sums over the gangs placed
};

}  // namespace mortise::sim
