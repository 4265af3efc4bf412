#include "sim/asks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/gang.h"
#include "scheduler/placement/gang.h"

namespace mortise::sim {
namespace {

constexpr const char* kProductLabel = "nvidia.com/gpu.product";

/// One gang while its pods are collected.
struct Collected {
  kube::GangRef ref;  // of its first pod
  std::int32_t found = 0;
  std::int32_t on_nodes = 0;
  std::map<std::string, std::int32_t> on_nodes_of_role{};
};

/// What tells apart members that are not alike.
auto kind_of(const AskingPod& pod) {
  const placement::PodRequest& request = pod.request;
  std::vector<std::tuple<std::string, int, std::int64_t, std::int64_t, std::int32_t, std::int64_t>> containers;
  for (const auto& ask : request.asks) {
    containers.emplace_back(ask.name, static_cast<int>(ask.kind), ask.cpu, ask.memory, ask.gpus, ask.gpu_milli);
  }
  return std::tuple(pod.node_selector, request.cpu, request.memory, request.gpus, request.gpu_milli, request.models,
                    request.qos, request.topology_policy, request.nvlink, request.pod_level_resources,
                    std::move(containers));
}

/// What is known of one ask beside the ask itself.
struct Parts {
  std::map<std::string, Collected> gangs{};     // by key; several when they start together
  std::map<std::string, std::int32_t> units{};  // members of parts that must each share a domain
};

/// Sorts pods into asks.
class Sorter {
 public:
  explicit Sorter(const Manifest& manifest) : manifest_(manifest) {}

  Result<std::vector<Ask>> run() {
    for (const ManifestPod& pod : manifest_.pods) {
      if (const Status added = add(pod); !added) return Error{pod.where + added.message()};
    }
    for (const auto& [ask, parts] : parts_) finish(asks_[ask], parts);
    return std::move(asks_);
  }

 private:
  Status add(const ManifestPod& from);
  void add_single(const ManifestPod& from, AskingPod pod);
  void add_to_gang(const ManifestPod& from, AskingPod pod, const kube::GangRef& ref);
  void add_member(std::size_t ask, const std::string& role, AskingPod pod);
  static void take_topology(const kube::GangRef& ref, Ask& ask, Parts& parts);
  static void finish(Ask& ask, const Parts& parts);

  const Manifest& manifest_;
  std::vector<Ask> asks_;
  std::map<std::string, std::size_t> by_key_;  // gangs that start together have one
  std::map<std::size_t, Parts> parts_;         // of the asks that are gangs
  /// Which role of an ask it is, by its name and what its members ask for.
  std::map<std::tuple<std::size_t, std::string, decltype(kind_of(AskingPod()))>, std::size_t> roles_;
};

std::string joint_key(const kube::GangRef& ref) {
  if (ref.together.size() < 2) return ref.key();
  std::string key = "together:";
  for (const std::string& name : ref.together) key += name + ",";
  return key;
}

/// Gangs that start together may have roles of one name.
std::string role_of(const kube::GangRef& ref, const std::string& name) {
  return ref.together.size() < 2 ? name : ref.identity;
}

void Sorter::add_member(std::size_t ask, const std::string& role, AskingPod pod) {
  std::vector<AskingRole>& roles = asks_[ask].roles;
  const auto [known, is_new] = roles_.try_emplace({ask, role, kind_of(pod)}, roles.size());
  if (is_new) roles.push_back({role, {}, 0});
  roles[known->second].members.push_back(std::move(pod));
}

/// The whole gang in one domain is what can be planned.
void Sorter::take_topology(const kube::GangRef& ref, Ask& ask, Parts& parts) {
  for (const kube::TopologyAsk& wish : ref.topology) {
    if (!wish.unit.empty() && wish.required) ++parts.units[wish.unit];
    std::string& level = wish.required ? ask.required_level : ask.preferred_level;
    if (level.empty()) level = wish.level;
    if (level == wish.level || wish.level.empty()) continue;
    ask.obstacle = "members ask for different levels, " + quote(level) + " and " + quote(wish.level) +
                   "; one level for all is what can be asked for";
  }
}

void Sorter::add_single(const ManifestPod& from, AskingPod pod) {
  Ask ask;
  ask.name = from.pod.key();
  ask.where = from.where;
  ask.members = ask.minimum = 1;
  if (from.pod.node_name.empty()) {
    ask.roles.push_back({{}, {std::move(pod)}, 1});
  } else {
    ask.nodes.push_back(from.pod.node_name);
  }
  asks_.push_back(std::move(ask));
}

void Sorter::add_to_gang(const ManifestPod& from, AskingPod pod, const kube::GangRef& ref) {
  const auto [entry, is_new] = by_key_.try_emplace(joint_key(ref), asks_.size());
  if (is_new) {
    asks_.emplace_back();
    asks_.back().name = ref.identity;
    // The last part is a revision, which pods that nobody has made yet do not have.
    if (asks_.back().name.ends_with('/')) asks_.back().name.pop_back();
    asks_.back().convention = kube::gang_convention_name(ref.convention);
    asks_.back().where = from.where;
  }
  Ask& ask = asks_[entry->second];
  Parts& parts = parts_[entry->second];
  Collected& own = parts.gangs.try_emplace(ref.key(), Collected{ref}).first->second;
  ++ask.members;
  ++own.found;
  take_topology(ref, ask, parts);
  if (from.pod.node_name.empty()) {
    add_member(entry->second, role_of(ref, ref.role), std::move(pod));
  } else {
    ask.nodes.push_back(from.pod.node_name);
    ++own.on_nodes;
    ++own.on_nodes_of_role[ref.role];
  }
}

Status Sorter::add(const ManifestPod& from) {
  auto request = kube::pod_request(from.pod);
  if (!request) return Error{"pod " + quote(from.pod.key()) + ": " + request.message()};
  const auto ref = kube::recognise_gang(from.pod, manifest_.objects);
  if (!ref) return Error{"pod " + quote(from.pod.key()) + ": " + ref.message()};
  AskingPod pod{*std::move(request), from.pod.node_selector};
  pod.node_selector.erase(kProductLabel);
  if (*ref) {
    add_to_gang(from, std::move(pod), **ref);
  } else {
    add_single(from, std::move(pod));
  }
  return ok_status();
}

/// So many members of the roles of this name, the first ones first, or nobody.
void raise_minima(std::vector<AskingRole>& roles, const std::string& name, std::int32_t wanted) {
  for (AskingRole& role : roles) {
    if (role.name != name) continue;
    role.minimum = std::max(role.minimum, std::min(wanted, static_cast<std::int32_t>(role.members.size())));
    wanted = std::max(wanted - role.minimum, 0);
  }
}

/// Why a gang cannot be asked about as it stands; empty: it can.
std::string obstacle_of(const Collected& gang) {
  const kube::GangRef& ref = gang.ref;
  if (!ref.waits_for.empty()) return ref.waits_for;
  if (gang.found < ref.minimum) {
    return std::to_string(gang.found) + " of " + std::to_string(ref.minimum) +
           " members are there; it starts when all of these are";
  }
  if (ref.roles_needed > 0 && static_cast<std::size_t>(ref.roles_needed) < ref.roles.size()) {
    return "any " + std::to_string(ref.roles_needed) + " of its parts would do, which cannot be asked for";
  }
  return {};
}

void Sorter::finish(Ask& ask, const Parts& parts) {
  std::int64_t minimum = 0;
  for (const auto& [key, gang] : parts.gangs) {
    if (ask.obstacle.empty()) ask.obstacle = obstacle_of(gang);
    for (const kube::GangRole& role : gang.ref.roles) {
      const auto placed = gang.on_nodes_of_role.find(role.name);
      const std::int32_t has = placed == gang.on_nodes_of_role.end() ? 0 : placed->second;
      raise_minima(ask.roles, role_of(gang.ref, role.name), role.minimum - has);
    }
    const std::int32_t missing = std::max(gang.ref.minimum - gang.on_nodes, 0);
    if (gang.ref.together.size() > 1) raise_minima(ask.roles, gang.ref.identity, missing);
    minimum += missing;
    if (ask.obstacle.empty() && parts.gangs.size() < gang.ref.together.size()) {
      ask.obstacle = std::to_string(parts.gangs.size()) + " of the " + std::to_string(gang.ref.together.size()) +
                     " gangs are there that start together";
    }
  }
  for (const auto& [unit, members] : parts.units) {
    if (members == ask.members || !ask.obstacle.empty()) continue;
    ask.obstacle =
        "its part " + quote(unit) + " asks for a domain of its own; one for all members is what can be asked for";
  }
  if (minimum > placement::kMaxGangMembers) {
    ask.invalid = "needs " + std::to_string(minimum) + " members together; " +
                  std::to_string(placement::kMaxGangMembers) + " are the most that are placed as one";
  }
  ask.minimum = static_cast<std::int32_t>(std::clamp<std::int64_t>(minimum, 1, placement::kMaxGangMembers + 1));
  // Said of the role, a minimum makes for a better answer.
  if (ask.roles.size() == 1) raise_minima(ask.roles, ask.roles.front().name, ask.minimum);
}

}  // namespace

Result<std::vector<Ask>> asks_of(const Manifest& manifest) {
  return Sorter(manifest).run();
}

}  // namespace mortise::sim
