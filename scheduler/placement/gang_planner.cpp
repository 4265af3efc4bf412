#include "scheduler/placement/gang_planner.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

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

GangDecision GangPlanner::plan(const GangRequest& request) {
  domains_.refresh();
  if (const Status status = check_gang(request); !status) return GangRejected{GangReason::kInvalid, status.message()};
  const Result<GangLevels> levels = levels_of(request, domains_);
  if (!levels) return GangRejected{GangReason::kUnknownLevel, levels.message()};
  if (auto apart = bound_apart(request, domains_, cluster_, levels->required)) {
    return GangRejected{GangReason::kBoundApart, *apart};
  }
  std::vector<GangKind> kinds = gang_kinds(request, cluster_, seed_);
  if (kinds.size() > kMaxKinds) return plan_around_pinned(request, kinds.size());
  const GangSearch::Context context{cluster_, domains_, policy_, quality_};
  GangSearch now(context, request, kinds, *levels, GangRooms::View::kNow);
  if (now.fits()) {
    if (std::optional<GangPlan> plan = now.plan()) return std::move(*plan);
    return GangRejected{GangReason::kNoRoom, "there is room, but no plan was found in the steps a search may take",
                        false};
  }
  // What members that have a place hold would count as free on empty nodes.
  if (request.bound.empty()) {
    GangSearch ever(context, request, kinds, *levels, GangRooms::View::kEmpty);
    if (!ever.fits()) return GangRejected{GangReason::kNeverFits, ever.shortfall(), ever.exact()};
  }
  return GangRejected{GangReason::kNoRoom, now.shortfall(), now.exact()};
}

/// More kinds than a search takes are mostly members of which each has a node of its own already, by its selector:
/// there is nothing to choose but devices. Node by node, and then the rest, which those are bound members for.
GangDecision GangPlanner::plan_around_pinned(const GangRequest& request, std::size_t kinds) {
  std::map<NodeId, std::vector<std::uint32_t>> pinned;
  std::vector<std::uint32_t> rest;
  for (std::uint32_t r = 0; r < request.roles.size(); ++r) {
    const GangRole& role = request.roles[r];
    if (role.count == 0) continue;
    const bool is_pinned = role.allowed && role.allowed->size() == 1 && role.min == role.count;
    (is_pinned ? pinned[role.allowed->front()] : rest).push_back(r);
  }
  std::vector<std::vector<std::uint32_t>> parts;
  for (auto& [node, roles] : pinned) parts.push_back(std::move(roles));
  if (!rest.empty()) parts.push_back(std::move(rest));
  if (parts.size() < 2) {
    return GangRejected{GangReason::kInvalid, "the roles ask for " + std::to_string(kinds) +
                                                  " different things; at most " + std::to_string(kMaxKinds)};
  }
  const ClusterState::Mark before = cluster_.mark();
  GangDecision decision = plan_parts(request, parts);
  cluster_.undo(before);
  return decision;
}

/// Takes what it plans, for the parts that follow.
GangDecision GangPlanner::plan_parts(const GangRequest& request, const std::vector<std::vector<std::uint32_t>>& parts) {
  std::vector<NodeId> places(request.bound.begin(), request.bound.end());
  std::vector<GangMember> members;
  GangPlan last;
  for (const std::vector<std::uint32_t>& roles : parts) {
    const bool is_last = &roles == &parts.back();
    GangRequest part;
    for (const std::uint32_t r : roles) part.roles.push_back(request.roles[r]);
    if (is_last) {
      part.min = std::max(0, request.min - static_cast<std::int32_t>(members.size()));
      part.required_level = request.required_level;
      part.preferred_level = request.preferred_level;
      part.bound = places;
    }
    GangDecision decision = plan(part);
    const auto* planned = std::get_if<GangPlan>(&decision);
    if (planned == nullptr) {
      auto& why = std::get<GangRejected>(decision);
      if (!is_last)
        why.detail = "on node " + cluster_.node_name(part.roles.front().allowed->front()) + ": " + why.detail;
      return decision;
    }
    for (GangMember member : planned->members) {
      const ShapeId shape = cluster_.intern(part.roles[member.role].pod);
      if (!cluster_.apply(shape, member.node, member.devices, Knowledge::kPredicted)) {
        return GangRejected{GangReason::kNoRoom, "the members pinned to nodes do not fit together", false};
      }
      member.role = roles[member.role];
      members.push_back(member);
      places.push_back(member.node);
    }
    last = *planned;
  }
  last.members = std::move(members);
  return last;
}

}  // namespace mortise::placement
