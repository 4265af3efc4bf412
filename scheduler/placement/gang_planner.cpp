#include "scheduler/placement/gang_planner.h"

#include <algorithm>
#include <utility>

#include "scheduler/placement/gang_search.h"

namespace mortise::placement {

namespace {
std::string known_levels(const Domains& domains) {
  std::string names;
  for (const TopologyLevel& level : domains.levels()) names += level.name + ", ";
  return names + std::string(kNodeLevelName);
}

/// Why nothing can be asked of the level; empty: the cluster has it, or none is asked for.
std::string unknown_level(const std::string& level, const Domains& domains) {
  if (level.empty() || domains.find_level(level)) return {};
  return "there is no topology level '" + level + "'; known: " + known_levels(domains);
}

/// The required level is one of the cluster's. Of a preferred one that is not, nothing is asked.
GangLevels levels_of(const GangRequest& request, const Domains& domains) {
  GangLevels levels;
  levels.required = request.required_level.empty() ? Domains::kCluster : *domains.find_level(request.required_level);
  levels.preferred = domains.node_level();
  if (!request.preferred_level.empty()) {
    levels.preferred = domains.find_level(request.preferred_level).value_or(domains.node_level());
  }
  levels.preferred = std::max(levels.preferred, levels.required);
  return levels;
}

/// Where members are that have a place, if that is not in one domain of the required level.
std::optional<std::string> bound_apart(const GangRequest& request, const Domains& domains, const ClusterState& cluster,
                                       int required) {
  const bool nodes = required == domains.node_level();
  std::optional<NodeId> first;
  for (const NodeId node : request.bound) {
    if (!domains.knows(node)) continue;
    if (!first) first = node;
    const bool together =
        nodes ? node == *first : domains.domain_of(node, required) == domains.domain_of(*first, required);
    if (together) continue;
    const auto name = [&](NodeId id) {
      return nodes ? cluster.node_name(id) : domains.path(domains.domain_of(id, required));
    };
    return "members are in " + name(*first) + " and in " + name(node) + ", not in one " +
           std::string(domains.level_name(required));
  }
  return std::nullopt;
}
}  // namespace

std::string preference_left_out(const std::string& preferred_level, const Domains& domains) {
  const std::string unknown = unknown_level(preferred_level, domains);
  return unknown.empty() ? unknown : "its preferred level does not count: " + unknown;
}

GangDecision GangPlanner::plan(const GangRequest& request) {
  domains_.refresh();
  if (const Status status = check_gang(request); !status) return GangRejected{GangReason::kInvalid, status.message()};
  if (std::string unknown = unknown_level(request.required_level, domains_); !unknown.empty()) {
    return GangRejected{GangReason::kUnknownLevel, std::move(unknown)};
  }
  const GangLevels levels = levels_of(request, domains_);
  if (auto apart = bound_apart(request, domains_, cluster_, levels.required)) {
    return GangRejected{GangReason::kBoundApart, *apart};
  }
  std::vector<GangKind> kinds = gang_kinds(request, cluster_, seed_);
  if (kinds.size() > kMaxKinds) {
    return GangRejected{GangReason::kInvalid, "the roles ask for " + std::to_string(kinds.size()) +
                                                  " different things; at most " + std::to_string(kMaxKinds)};
  }
  const GangSearch::Context context{cluster_, domains_, policy_, quality_};
  GangSearch now(context, request, kinds, levels, GangRooms::View::kNow);
  if (now.fits()) {
    if (std::optional<GangPlan> plan = now.plan()) return std::move(*plan);
    return GangRejected{GangReason::kNoRoom, "there is room, but no plan was found in the steps a search may take",
                        false};
  }
  // What members that have a place hold would count as free on empty nodes.
  if (request.bound.empty()) {
    GangSearch ever(context, request, kinds, levels, GangRooms::View::kEmpty);
    // A search that was cut short proves nothing.
    if (!ever.fits() && ever.exact()) return GangRejected{GangReason::kNeverFits, ever.shortfall()};
  }
  return GangRejected{GangReason::kNoRoom, now.shortfall(), now.exact()};
}

}  // namespace mortise::placement
