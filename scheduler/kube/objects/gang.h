#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/gang_objects.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

inline constexpr std::string_view kGangNameAnnotation = "mortise.dev/gang-name";
inline constexpr std::string_view kGangMinMemberAnnotation = "mortise.dev/gang-min-member";
inline constexpr std::string_view kTopologyRequiredAnnotation = "mortise.dev/topology-required";
inline constexpr std::string_view kTopologyPreferredAnnotation = "mortise.dev/topology-preferred";

/// The ways in which a pod says that it is one of a gang; the first in this order that it uses counts.
enum class GangConvention {
  kMortise,
  kNativePodGroup,
  kNativeWorkload,
  kSchedulerPlugins,
  kLightweight,
  kVolcano,
  kKoordinator,
  kKai,
  kKueue,
  kHived,
  kYunikorn,
  kLeaderWorkerSet,
  kKubeflow,
  kRay,
};

/// The gang that one pod is of, as this pod and its group object tell.
struct GangRef {
  GangConvention convention = GangConvention::kMortise;
  std::string identity;      ///< the same for all members, and different from other gangs of the convention
  std::string role;          ///< empty: not said
  std::int32_t minimum = 0;  ///< members that must start together; 0 while `waits_for` is set
  std::int32_t total = 0;    ///< as many as there are to be; 0: not said
  std::vector<GangRole> roles;
  std::int32_t roles_needed = 0;      ///< so many of the roles must reach their minimum; 0: all
  std::vector<TopologyAsk> topology;  ///< what this member asks
  std::string priority_class;         ///< of the group; empty: its members' priority counts
  std::optional<std::int32_t> priority;
  std::vector<std::string> together;  ///< "NAMESPACE/NAME" of gangs that start together, itself included
  OwnerReference object;              ///< the group object, in the pod's namespace; without UID: there is none
  std::string waits_for;              ///< a reason: the size is not known before this object exists

  /// Unlike `identity` also different from gangs of other conventions.
  std::string key() const;
};

struct GangConventionInfo {
  GangConvention convention;
  std::string_view name;
  std::string_view description;  ///< what on the pod says so
};

/// In order of precedence.
std::span<const GangConventionInfo> gang_conventions();
std::string_view gang_convention_name(GangConvention convention);

/// The gang of the pod; empty: it is for itself. An error is the fault of the pod or of its group object, and holds for
/// this pod only.
Result<std::optional<GangRef>> recognise_gang(const Pod& pod, const GroupObjects& objects);

/// The priority of a gang as a whole: that of the group, else the one that all members share.
Result<std::int32_t> gang_priority(const GangRef& gang, const GroupObjects& objects,
                                   std::span<const std::int32_t> members);
/// Why members of these priorities, and maybe others between, are no gang.
std::string mixed_priorities(std::int32_t low, std::int32_t high);

}  // namespace mortise::kube
