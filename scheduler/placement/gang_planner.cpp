#include "scheduler/placement/gang_planner.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "scheduler/placement/gang_search.h"
#include "scheduler/placement/node_room.h"

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

GangRejected too_many(std::size_t kinds) {
  return {GangReason::kInvalid,
          "the roles ask for " + std::to_string(kinds) + " different things; at most " + std::to_string(kMaxKinds)};
}
}  // namespace

std::string preference_left_out(const std::string& preferred_level, const Domains& domains) {
  const std::string unknown = unknown_level(preferred_level, domains);
  return unknown.empty() ? unknown : "its preferred level does not count: " + unknown;
}

struct GangTask {
  std::vector<GangKind> kinds;
  GangLevels levels;
};

std::variant<GangTask, GangRejected> GangPlanner::read(const GangRequest& request) {
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
  return GangTask{std::move(kinds), levels};
}

std::optional<GangPlan> GangPlanner::try_plan(const GangRequest& request) {
  auto read_task = read(request);
  auto* task = std::get_if<GangTask>(&read_task);
  if (task == nullptr) return std::nullopt;
  if (task->kinds.size() > kMaxKinds) {
    GangDecision decision = plan_around_pinned(request, task->kinds.size());
    auto* plan = std::get_if<GangPlan>(&decision);
    return plan != nullptr ? std::optional(std::move(*plan)) : std::nullopt;
  }
  GangSearch now({cluster_, domains_, policy_, quality_}, request, std::move(task->kinds), task->levels,
                 GangRooms::View::kNow);
  return now.fits() ? now.plan() : std::nullopt;
}

GangDecision GangPlanner::plan(const GangRequest& request) {
  auto read_task = read(request);
  if (auto* rejected = std::get_if<GangRejected>(&read_task)) return std::move(*rejected);
  const auto& [kinds, levels] = std::get<GangTask>(read_task);
  if (kinds.size() > kMaxKinds) return plan_around_pinned(request, kinds.size());
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

/// More kinds than a search takes are mostly members of which each has a node of its own already, by its selector:
/// there is nothing to choose but devices. Node by node, and then the rest, for which those are bound members.
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
  if (parts.size() < 2) return too_many(kinds);
  const ClusterState::Mark before = cluster_.mark();
  GangDecision decision = plan_parts(request, parts);
  cluster_.undo(before);
  return decision;
}

/// Takes what it plans, for the parts that follow.
GangDecision GangPlanner::plan_parts(const GangRequest& request, const std::vector<std::vector<std::uint32_t>>& parts) {
  std::vector<NodeId> places(request.bound.begin(), request.bound.end());
  std::vector<GangMember> members;
  GangDecision decision;
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
    decision = is_last ? plan(part) : plan_on_node(part, part.roles.front().allowed->front());
    const auto* planned = std::get_if<GangPlan>(&decision);
    if (planned == nullptr) return decision;
    for (GangMember member : planned->members) {
      const ShapeId shape = cluster_.intern(part.roles[member.role].pod);
      const auto taken = cluster_.apply(shape, member.node, member.devices, Knowledge::kPredicted);
      if (!taken) return GangRejected{GangReason::kNoRoom, taken.message(), false};
      member.role = roles[member.role];
      members.push_back(member);
      places.push_back(member.node);
    }
  }
  GangPlan plan = std::get<GangPlan>(std::move(decision));  // it has the level of all members
  plan.members = std::move(members);
  return plan;
}

/// All members on this node, or nobody.
GangDecision GangPlanner::plan_on_node(const GangRequest& request, NodeId node) {
  if (!domains_.knows(node)) return GangRejected{GangReason::kNoRoom, "a node of its selectors is not known"};
  const std::vector<GangKind> kinds = gang_kinds(request, cluster_, seed_);
  if (kinds.size() > kMaxKinds) return too_many(kinds.size());
  std::vector<MemberKind> members;
  Mix all;
  std::string what;
  for (const GangKind& kind : kinds) {
    all.of[members.size()] = static_cast<std::uint16_t>(kind.count);
    members.push_back(kind.member);
    what += (what.empty() ? "" : " and ") + count_text(kind.count, kind.like->pod);
  }
  NodeRoom room(cluster_, policy_, std::move(members));
  const auto places = room.arrange(NodeTrial(cluster_, node), all);
  if (!places) {
    const bool ever = room.arrange(NodeTrial::empty(cluster_, cluster_.state_of(node).machine), all).has_value();
    // A search that was cut short proves nothing.
    return GangRejected{ever || !room.exact() ? GangReason::kNoRoom : GangReason::kNeverFits,
                        "needs " + what + " on node " + cluster_.node_name(node), room.exact()};
  }
  GangPlan plan;
  std::vector<std::uint32_t> next(request.roles.size(), 0);  // index of a role's next member
  for (const NodeRoom::Place& place : *places) {
    const auto& roles = kinds[place.kind].roles;
    const auto role = *std::find_if(roles.begin(), roles.end(), [&](std::uint32_t r) {
      return next[r] < static_cast<std::uint32_t>(request.roles[r].count);
    });
    plan.members.push_back({role, next[role]++, node, place.devices});
  }
  return plan;
}

}  // namespace mortise::placement
