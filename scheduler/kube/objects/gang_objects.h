#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::kube {

/// More members than any cluster has room for; larger counts are taken for mistakes.
inline constexpr std::int32_t kMaxGangMembers = 1'000'000;

/// What members ask of the topology above the nodes.
struct TopologyAsk {
  std::string level;       ///< name of a level or key of a node label; empty: as near together as may be
  bool required = false;   ///< else preferred
  bool exclusive = false;  ///< nobody else who asks so for this level shares the domain
  std::string unit;        ///< the members that must share a domain; empty: the whole gang

  friend bool operator==(const TopologyAsk&, const TopologyAsk&) = default;
};

/// A part of a gang whose members are alike.
struct GangRole {
  std::string name;
  std::int32_t minimum = 0;           ///< of this role; 0: none are demanded
  std::vector<TopologyAsk> topology;  ///< of this role's members beyond what the gang asks

  friend bool operator==(const GangRole&, const GangRole&) = default;
};

/// The kinds of objects that say how large a gang is. kubeflow.org has one kind per framework.
enum class GroupKind {
  kNativePodGroup,
  kWorkload,
  kPodGroup,  ///< of scheduler-plugins
  kVolcanoPodGroup,
  kKaiPodGroup,
  kTfJob,
  kPyTorchJob,
  kMpiJob,
  kXgBoostJob,
  kPaddleJob,
  kJaxJob,
  kMxJob,
  kJobSet,
  kJob,
  kLeaderWorkerSet,
  kRayCluster,
  kPriorityClass,
};

/// What we use of an object that gives a gang its size, whatever its kind.
struct GroupObject {
  GroupKind kind = GroupKind::kPodGroup;
  std::string api_version;
  std::string ns;  ///< empty for kinds without a namespace
  std::string name;
  std::string uid;
  std::string invalid;          ///< why it cannot be used; empty: it can
  std::int32_t minimum = 0;     ///< 0: its pods are no gang
  std::int32_t total = 0;       ///< 0: it does not say
  std::vector<GangRole> roles;  ///< in the order of the object
  std::int32_t roles_needed = 0;
  std::vector<TopologyAsk> topology;
  std::string priority_class;
  std::optional<std::int32_t> priority;
  std::vector<std::string> together;  ///< "NAMESPACE/NAME" of gangs that start together, itself included
  bool one_by_one = false;            ///< a role's pods come when those before have started: each is a gang of its own
  bool opted_in = false;              ///< RayCluster: its pods are a gang

  /// The role of this name, or null.
  const GangRole* role(std::string_view role_name) const;

  friend bool operator==(const GroupObject&, const GroupObject&) = default;
};

struct GroupKindInfo {
  GroupKind kind;
  std::string_view api_group;
  std::string_view name;
  std::string_view resource;  ///< plural, as in paths of the API
};

/// All kinds that are read. scheduler-plugins' PodGroup is in it twice, with its present and its former API group.
std::span<const GroupKindInfo> group_kinds();
std::string_view group_kind_name(GroupKind kind);
/// The kind of an object or of an owner reference; empty: none that says how large a gang is. `api_version` is
/// "GROUP/VERSION"; any version will do.
std::optional<GroupKind> find_group_kind(std::string_view api_version, std::string_view kind);

/// Reads one object. What is wrong inside it becomes its `invalid`, for its pods to hear; an error means that not even
/// its kind and name are known.
Result<GroupObject> decode_group_object(const nlohmann::json& document);
Result<GroupObject> parse_group_object(std::string_view json);

/// The group objects of a cluster as last seen.
class GroupObjects {
 public:
  /// Adds the object, or replaces the one of its kind, namespace and name.
  void put(GroupObject object);
  void remove(GroupKind kind, std::string_view ns, std::string_view name);
  /// Null: there is none.
  const GroupObject* find(GroupKind kind, std::string_view ns, std::string_view name) const;
  std::size_t size() const { return objects_.size(); }

 private:
  using Key = std::tuple<GroupKind, std::string, std::string>;
  std::map<Key, GroupObject> objects_;
};

}  // namespace mortise::kube
