#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_keys.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

constexpr const char* kMinMember = "minMember";
constexpr int kMaxSubGroupDepth = 16;  ///< each sub-group gets the asks of all above it: no more than can be meant

void refuse(GroupObject& object, std::string why) {
  if (object.invalid.empty()) object.invalid = std::move(why);
}

void decode_priority(const Field& spec, GroupObject& object) {
  object.priority_class = spec.member("priorityClassName").text();
}

/// spec.minMember, without which such an object says nothing.
void decode_min_member(const Field& spec, GroupObject& object) {
  const auto minimum = spec.member(kMinMember).count(1, kMaxGangMembers);
  if (!minimum) refuse(object, "spec.minMember is missing");
  object.minimum = minimum.value_or(0);
}

/// A policy of Kubernetes' own: gang.minCount, or basic, which is 0 here.
std::int32_t decode_policy(const Field& policy, const std::string& path, GroupObject& object) {
  if (!policy.member("gang").present()) {
    if (!policy.member("basic").present()) refuse(object, path + " has neither gang nor basic");
    return 0;
  }
  const auto minimum = policy.member("gang").member("minCount").count(1, kMaxGangMembers);
  if (!minimum) refuse(object, path + ".gang.minCount is missing");
  return minimum.value_or(0);
}

void add_ask(std::string level, bool required, const std::string& unit, std::vector<TopologyAsk>& asks) {
  if (!level.empty()) asks.push_back({std::move(level), required, false, unit});
}

/// Koordinator keeps in annotations what this kind of object has no fields for.
void decode_koordinator_extras(const Field& metadata, GroupObject& object) {
  const auto annotations = metadata.member("annotations").texts();
  if (const auto found = annotations.find(keys::kKoordinatorTotal); found != annotations.end()) {
    const auto total = parse_members("annotation " + found->first, found->second);
    if (total) {
      object.total = *total;
      if (object.total < object.minimum) refuse(object, "annotation " + found->first + " is less than spec.minMember");
    } else {
      refuse(object, total.message());
    }
  }
  if (const auto found = annotations.find(keys::kKoordinatorGroups); found != annotations.end()) {
    auto together = parse_gang_list("annotation " + found->first, found->second);
    if (together) {
      object.together = *std::move(together);
    } else {
      refuse(object, together.message());
    }
  }
}

void decode_network_topology(const Field& topology, GroupObject& object) {
  if (!topology.present()) return;
  const std::string mode = topology.member("mode").text();
  if (!mode.empty() && mode != "hard" && mode != "soft") {
    return refuse(object, "spec.networkTopology.mode is " + quote(mode) + "; allowed: hard, soft");
  }
  const auto tier = topology.member("highestTierAllowed").count(0, kMaxGangMembers);
  std::string level = topology.member("highestTierName").text();
  if (tier && !level.empty()) {
    return refuse(object, "spec.networkTopology has both highestTierAllowed and highestTierName; use one");
  }
  if (tier) level = "tier-" + std::to_string(*tier);
  // Without a tier, hard keeps nobody out, and soft asks for as near as may be.
  if (mode == "soft" || !level.empty()) object.topology.push_back({std::move(level), mode != "soft", false, {}});
}

/// The tree of a KAI group's sub-groups.
struct SubGroup {
  GangRole role;
  std::string parent;
  std::int32_t children = 0;
  bool has_minimum = false;
  std::optional<std::int32_t> min_sub_group;
};
using SubGroups = std::map<std::string, SubGroup>;

void decode_topology_constraint(const Field& constraint, const std::string& unit, std::vector<TopologyAsk>& asks) {
  add_ask(constraint.member("requiredTopologyLevel").text(), true, unit, asks);
  add_ask(constraint.member("preferredTopologyLevel").text(), false, unit, asks);
}

SubGroups decode_sub_groups(const Field& spec, GroupObject& object) {
  SubGroups all;
  for (const Field& field : spec.member("subGroups").items()) {
    SubGroup group;
    group.role.name = field.member("name").text();
    if (group.role.name.empty()) refuse(object, "spec.subGroups has one without a name");
    const auto minimum = field.member(kMinMember).count(1, kMaxGangMembers);
    group.has_minimum = minimum.has_value();
    group.role.minimum = minimum.value_or(0);
    group.min_sub_group = field.member("minSubGroup").count(1, kMaxGangMembers);
    group.parent = field.member("parent").text();
    decode_topology_constraint(field.member("topologyConstraint"), group.role.name, group.role.topology);
    std::string name = group.role.name;
    if (!all.emplace(name, std::move(group)).second) refuse(object, "spec.subGroups has " + quote(name) + " twice");
  }
  return all;
}

/// Counts children, and gives every sub-group the asks of those above it.
void link_sub_groups(SubGroups& all, GroupObject& object) {
  for (auto& [name, group] : all) {
    if (!group.parent.empty() && !all.contains(group.parent)) {
      return refuse(object, "spec.subGroups: parent " + quote(group.parent) + " of " + quote(name) + " does not exist");
    }
    if (!group.parent.empty()) ++all.at(group.parent).children;
  }
  const SubGroups own = all;
  for (auto& [name, group] : all) {
    int depth = 1;
    for (std::string above = group.parent; !above.empty(); above = own.at(above).parent) {
      if (++depth > kMaxSubGroupDepth) {
        return refuse(object, "spec.subGroups: " + quote(name) + " is its own ancestor, or more than " +
                                  std::to_string(kMaxSubGroupDepth) + " deep");
      }
      const auto& asks = own.at(above).role.topology;
      group.role.topology.insert(group.role.topology.end(), asks.begin(), asks.end());
    }
  }
}

/// Fewer sub-groups than there are may only be asked of those that hold pods themselves and have no parent.
void check_sub_group_counts(const SubGroups& all, std::optional<std::int32_t> needed, GroupObject& object) {
  std::int32_t roots = 0;
  bool flat = true;
  for (const auto& [name, group] : all) {
    roots += group.parent.empty() ? 1 : 0;
    flat = flat && group.parent.empty();
    if (group.children == 0 && !group.has_minimum) {
      refuse(object, "spec.subGroups: " + quote(name) + " has no minMember");
    } else if (group.children > 0 && group.min_sub_group.value_or(group.children) != group.children) {
      refuse(object, "spec.subGroups: minSubGroup of " + quote(name) + " must be " + std::to_string(group.children) +
                         ", the number of its sub-groups");
    }
  }
  if (!needed || *needed == roots) return;
  if (*needed > roots || !flat) {
    refuse(object, "spec.minSubGroup must be " + std::to_string(roots) + ", the number of its sub-groups");
  } else {
    object.roles_needed = *needed;
  }
}

std::int32_t least_members(const GroupObject& object) {
  std::vector<std::int32_t> minima;
  for (const GangRole& role : object.roles) minima.push_back(role.minimum);
  std::sort(minima.begin(), minima.end());
  if (object.roles_needed > 0) minima.resize(static_cast<std::size_t>(object.roles_needed));
  std::int32_t sum = 0;
  for (const std::int32_t minimum : minima) sum = add_members(sum, minimum);
  return sum;
}

}  // namespace

Result<std::int32_t> parse_members(const std::string& where, std::string_view text) {
  std::int32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 1 || value > kMaxGangMembers) {
    return Error{where + " is " + quote(text) + "; allowed: a whole number from 1 to " +
                 std::to_string(kMaxGangMembers)};
  }
  return value;
}

Result<std::vector<std::string>> parse_gang_list(const std::string& where, std::string_view text) {
  const Error mistake{where + " is " + quote(text) + "; allowed: a JSON list of \"NAMESPACE/NAME\""};
  const auto list = parse_json_text(text, {});
  if (!list || !list->is_array()) return mistake;
  std::vector<std::string> gangs;
  for (const auto& entry : *list) {
    if (!entry.is_string()) return mistake;
    const std::string& name = entry.get_ref<const std::string&>();
    const std::size_t slash = name.find('/');
    if (slash == 0 || slash == std::string::npos || slash + 1 == name.size()) return mistake;
    gangs.push_back(name);
  }
  std::sort(gangs.begin(), gangs.end());
  gangs.erase(std::unique(gangs.begin(), gangs.end()), gangs.end());
  return gangs;
}

void decode_native_pod_group(const Field& root, GroupObject& object) {
  const Field spec = root.member("spec");
  object.minimum = decode_policy(spec.member("schedulingPolicy"), "spec.schedulingPolicy", object);
  for (const Field& ask : spec.member("schedulingConstraints").member("topology").items()) {
    const std::string key = ask.member("key").text();
    add_ask(key.empty() ? ask.member("level").text() : key, true, {}, object.topology);  // once proposed as `level`
  }
  decode_priority(spec, object);
  if (const auto priority = spec.member("priority").whole(32)) object.priority = static_cast<std::int32_t>(*priority);
}

void decode_workload(const Field& root, GroupObject& object) {
  for (const Field& part : root.member("spec").member("podGroups").items()) {
    GangRole role;
    role.name = part.member("name").text();
    role.minimum = decode_policy(part.member("policy"), "policy of pod group " + quote(role.name), object);
    object.roles.push_back(std::move(role));
  }
}

void decode_pod_group(const Field& root, GroupObject& object) {
  decode_min_member(root.member("spec"), object);
  decode_koordinator_extras(root.member("metadata"), object);
}

void decode_volcano_pod_group(const Field& root, GroupObject& object) {
  const Field spec = root.member("spec");
  decode_min_member(spec, object);
  for (const auto& [task, minimum] : spec.member("minTaskMember").members()) {
    const auto count = minimum.count(0, kMaxGangMembers);
    object.roles.push_back({task, count.value_or(0), {}});
  }
  // As Volcano does: a group that may start with fewer than its tasks ask for is not held to them.
  if (least_members(object) > object.minimum) {
    for (GangRole& role : object.roles) role.minimum = 0;
  }
  decode_network_topology(spec.member("networkTopology"), object);
  decode_priority(spec, object);
}

void decode_kai_pod_group(const Field& root, GroupObject& object) {
  const Field spec = root.member("spec");
  decode_topology_constraint(spec.member("topologyConstraint"), {}, object.topology);
  decode_priority(spec, object);
  SubGroups all = decode_sub_groups(spec, object);
  if (all.empty()) return decode_min_member(spec, object);
  link_sub_groups(all, object);
  check_sub_group_counts(all, spec.member("minSubGroup").count(1, kMaxGangMembers), object);
  if (!object.invalid.empty()) return;
  for (auto& [name, group] : all) {
    if (group.children == 0) object.roles.push_back(std::move(group.role));
  }
  object.minimum = std::max(spec.member(kMinMember).count(1, kMaxGangMembers).value_or(0), least_members(object));
}

void decode_priority_class(const Field& root, GroupObject& object) {
  const auto value = root.member("value").whole(32);
  if (!value) refuse(object, "value is missing");
  object.priority = static_cast<std::int32_t>(value.value_or(0));
}

}  // namespace mortise::kube
