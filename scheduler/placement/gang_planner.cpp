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

Result<GangLevels> levels_of(const GangRequest& request, const Domains& domains) {
  GangLevels levels{Domains::kCluster, domains.node_level()};
  const auto read = [&](const std::string& text, int& level) -> Status {
    if (text.empty()) return ok_status();
    const std::optional<int> found = domains.find_level(text);
    if (!found) return Error{"there is no topology level '" + text + "'; known: " + known_levels(domains)};
    level = *found;
    return ok_status();
  };
  if (const Status status = read(request.required_level, levels.required); !status) return status.error();
  if (const Status status = read(request.preferred_level, levels.preferred); !status) return status.error();
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

struct GangTask {
  std::vector<GangKind> kinds;
  GangLevels levels;
};

std::variant<GangTask, GangRejected> GangPlanner::read(const GangRequest& request) {
  domains_.refresh();
  if (const Status status = check_gang(request); !status) return GangRejected{GangReason::kInvalid, status.message()};
  const Result<GangLevels> levels = levels_of(request, domains_);
  if (!levels) return GangRejected{GangReason::kUnknownLevel, levels.message()};
  if (auto apart = bound_apart(request, domains_, cluster_, levels->required)) {
    return GangRejected{GangReason::kBoundApart, *apart};
  }
  std::vector<GangKind> kinds = gang_kinds(request, cluster_, seed_);
  if (kinds.size() > kMaxKinds) {
    return GangRejected{GangReason::kInvalid, "the roles ask for " + std::to_string(kinds.size()) +
                                                  " different things; at most " + std::to_string(kMaxKinds)};
  }
  return GangTask{std::move(kinds), *levels};
}

std::optional<GangPlan> GangPlanner::try_plan(const GangRequest& request) {
  auto read_task = read(request);
  auto* task = std::get_if<GangTask>(&read_task);
  if (task == nullptr) return std::nullopt;
  GangSearch now({cluster_, domains_, policy_, quality_}, request, std::move(task->kinds), task->levels,
                 GangRooms::View::kNow);
  return now.fits() ? now.plan() : std::nullopt;
}

GangDecision GangPlanner::plan(const GangRequest& request) {
  auto read_task = read(request);
  if (auto* rejected = std::get_if<GangRejected>(&read_task)) return std::move(*rejected);
  const auto& [kinds, levels] = std::get<GangTask>(read_task);
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
    if (!ever.fits()) return GangRejected{GangReason::kNeverFits, ever.shortfall(), ever.exact()};
  }
  return GangRejected{GangReason::kNoRoom, now.shortfall(), now.exact()};
}

}  // namespace mortise::placement
