#include "sim/asks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/gang.h"
#include "scheduler/kube/objects/gang_terms.h"
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
  std::map<std::string, Collected> gangs{};  // by key; several when they start together
  kube::GangTerms terms{};
  std::vector<std::int32_t> priorities{};  // of the members
};

/// Sorts pods into asks.
class Sorter {
 public:
  Sorter(const Manifest& manifest, std::span<const kube::Pod> placed) : manifest_(manifest), placed_(placed) {}

  Result<std::vector<Ask>> run() {
    for (const ManifestPod& pod : manifest_.pods) {
      if (const Status added = add(pod); !added) return Error{pod.where + added.message()};
    }
    add_placed();
    for (const auto& [ask, parts] : parts_) finish(asks_[ask], parts);
    return std::move(asks_);
  }

 private:
  Status add(const ManifestPod& from);
  void add_single(const ManifestPod& from, AskingPod pod);
  void add_to_gang(const ManifestPod& from, AskingPod pod, const kube::GangRef& ref);
  void add_member(std::size_t ask, const std::string& role, AskingPod pod);
  void add_placed();
  std::string problem_of(const Parts& parts) const;
  void finish(Ask& ask, const Parts& parts) const;

  const Manifest& manifest_;
  std::span<const kube::Pod> placed_;
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
  parts.terms.add(kube::saying_of(ref));
  parts.priorities.push_back(pod.request.priority);
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

/// Bound members that are only in the cluster's own file. What is wrong with one of them is not this file's fault.
void Sorter::add_placed() {
  std::set<std::string> known;
  for (const ManifestPod& pod : manifest_.pods) known.insert(pod.pod.key());
  for (const kube::Pod& pod : placed_) {
    if (known.contains(pod.key())) continue;
    const auto ref = kube::recognise_gang(pod, manifest_.objects);
    const auto request = kube::pod_request(pod);
    if (!ref || !*ref || !request || !by_key_.contains(joint_key(**ref))) continue;
    add_to_gang({pod, {}}, {*request, {}}, **ref);
  }
}

/// Of those that must start together, how many have no place yet.
std::int32_t missing_of(const Collected& gang) {
  return std::max(gang.ref.minimum - gang.on_nodes, 0);
}

/// Why the gang can never be placed as its members and its group describe it; empty: it can.
std::string Sorter::problem_of(const Parts& parts) const {
  if (std::string conflict = parts.terms.conflict(); !conflict.empty()) return conflict;
  for (const auto& [key, gang] : parts.gangs) {
    const auto priority = kube::gang_priority(gang.ref, manifest_.objects, parts.priorities);
    if (!priority) return priority.message();
  }
  std::int64_t together = 0;
  for (const auto& [key, gang] : parts.gangs) together += missing_of(gang);
  if (together <= placement::kMaxGangMembers) return {};
  return "needs " + std::to_string(together) + " members together; " + std::to_string(placement::kMaxGangMembers) +
         " are the most that are placed as one";
}

/// What the gangs of an ask wait for: names of reasons are those of the extender.
void find_obstacle(const Parts& parts, Ask& ask) {
  const auto set = [&ask](const char* name, std::string text) {
    if (!ask.obstacle.empty()) return;
    ask.obstacle_name = name;
    ask.obstacle = std::move(text);
  };
  for (const auto& [key, gang] : parts.gangs) {
    if (!gang.ref.waits_for.empty()) {
      set("GangWaits", gang.ref.waits_for);
    } else if (gang.found < gang.ref.minimum) {
      set("GangIncomplete", std::to_string(gang.found) + " of " + std::to_string(gang.ref.minimum) +
                                " members are there; it starts when all of these are");
    } else if (parts.gangs.size() < gang.ref.together.size()) {
      set("GangWaits", std::to_string(parts.gangs.size()) + " of the " + std::to_string(gang.ref.together.size()) +
                           " gangs are there that start together");
    }
  }
}

void Sorter::finish(Ask& ask, const Parts& parts) const {
  ask.required_level = parts.terms.required_level();
  ask.preferred_level = parts.terms.preferred_level();
  ask.obstacle = problem_of(parts);
  if (!ask.obstacle.empty()) ask.obstacle_name = "GangInvalid";
  find_obstacle(parts, ask);
  std::int64_t minimum = 0;
  for (const auto& [key, gang] : parts.gangs) {
    for (const kube::GangRole& role : gang.ref.roles) {
      const auto placed = gang.on_nodes_of_role.find(role.name);
      const std::int32_t has = placed == gang.on_nodes_of_role.end() ? 0 : placed->second;
      raise_minima(ask.roles, role_of(gang.ref, role.name), role.minimum - has);
    }
    if (gang.ref.together.size() > 1) raise_minima(ask.roles, gang.ref.identity, missing_of(gang));
    minimum += missing_of(gang);
  }
  ask.minimum = static_cast<std::int32_t>(std::clamp<std::int64_t>(minimum, 1, placement::kMaxGangMembers + 1));
  // Said of the role, a minimum makes for a better answer.
  if (ask.roles.size() == 1) raise_minima(ask.roles, ask.roles.front().name, ask.minimum);
}

}  // namespace

Result<std::vector<Ask>> asks_of(const Manifest& manifest, std::span<const kube::Pod> placed) {
  return Sorter(manifest, placed).run();
}

}  // namespace mortise::sim
