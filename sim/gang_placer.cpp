#include "sim/gang_placer.h"

#include <string>
#include <utility>
#include <variant>

#include "scheduler/base/quote.h"
#include "sim/cluster_domains.h"
#include "sim/curve.h"

namespace mortise::sim {

using placement::GangDecision;
using placement::GangPlan;

placement::Domains GangPlacer::make(const ReplaySpec& spec, const placement::ClusterState& cluster) {
  return make_domains(cluster, spec.cluster, spec.levels);
}

Status GangPlacer::check() const {
  const traces::Trace& trace = workload_.trace();
  for (const traces::GangRecord& gang : trace.gangs) {
    for (const std::string& level : {gang.required_level, gang.preferred_level}) {
      const Status known = check_level(domains_, level);
      if (!known) return Error{"trace " + quote(trace.name) + ": gang " + quote(gang.name) + ": " + known.message()};
    }
  }
  return ok_status();
}

GangDecision GangPlacer::plan(const traces::Arrival& arrival) {
  const traces::GangRecord& gang = workload_.trace().gangs[*workload_.trace().pods[arrival.pod].gang];
  placement::GangRequest request;
  request.required_level = gang.required_level;
  request.preferred_level = gang.preferred_level;
  for (const traces::GangRoleRecord& record : gang.roles) {
    placement::GangRole role;
    role.name = record.name;
    role.pod = workload_.requests()[workload_.request_of(record.first)];
    role.pod.name = arrival.name;
    role.count = role.min = static_cast<std::int32_t>(record.count);
    request.roles.push_back(std::move(role));
  }
  GangDecision decision = planner_.plan(request);
  ++arrived_;
  if (const auto* plan = std::get_if<GangPlan>(&decision)) count(*plan);
  return decision;
}

void GangPlacer::count(const GangPlan& plan) {
  ++placed_;
  const auto levels = static_cast<std::size_t>(domains_.node_level()) + 1;
  domains_used_.resize(levels, 0);
  const std::size_t finer = plan.domains.size();  // levels of which it is in several domains
  for (std::size_t level = 0; level < levels; ++level) {
    domains_used_[level] += level + finer < levels ? 1 : plan.domains[level + finer - levels];
  }
}

GangFigures GangPlacer::figures() const {
  GangFigures figures{arrived_, placed_, arrived_ - placed_, {}};
  for (std::size_t level = 0; level < domains_used_.size(); ++level) {
    const double mean = static_cast<double>(domains_used_[level]) / static_cast<double>(placed_);
    figures.spread.push_back({std::string(domains_.level_name(static_cast<int>(level))), round_hundredths(mean)});
  }
  return figures;
}

}  // namespace mortise::sim
