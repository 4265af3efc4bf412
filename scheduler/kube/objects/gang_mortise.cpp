#include <string>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {
namespace {

/// The object that made the pod, directly or through others, and knows how many it makes.
struct Maker {
  GroupKind kind;
  std::string name;
  std::string role;
};

std::optional<Maker> find_maker(const Pod& pod) {
  if (const std::string set = label(pod, "jobset.sigs.k8s.io/jobset-name"); !set.empty()) {
    return Maker{GroupKind::kJobSet, set, label(pod, "jobset.sigs.k8s.io/replicatedjob-name")};
  }
  const OwnerReference* owner = controller_of(pod);
  if (owner == nullptr) return std::nullopt;
  const auto kind = find_group_kind(owner->api_version, owner->kind);
  if (kind == GroupKind::kJob) return Maker{*kind, owner->name, {}};
  if (kind == GroupKind::kRayCluster) return Maker{*kind, owner->name, label(pod, "ray.io/group")};
  return std::nullopt;
}

/// The gang is all pods of their Job, JobSet or RayCluster, which says how many these are.
Status take_size_of_maker(const Pod& pod, const GroupObjects& objects, GangRef& gang) {
  const auto maker = find_maker(pod);
  if (!maker) {
    return Error{"annotation " + std::string(kGangMinMemberAnnotation) +
                 " is missing; only pods of a Job, JobSet or RayCluster can do without it"};
  }
  const Status taken = take_group(pod, objects, maker->kind, maker->name, gang);
  if (!taken || !gang.waits_for.empty()) return taken;
  gang.role = maker->role;
  const GroupObject* group = objects.find(maker->kind, namespace_of(pod), maker->name);
  if (!group->one_by_one) return ok_status();
  const GangRole* role = group->role(maker->role);
  if (role == nullptr) return Error{"its JobSet has no replicated job " + quote(maker->role)};
  gang.identity += "/" + role->name;
  gang.minimum = role->minimum;
  gang.total = role->minimum;
  gang.roles = {*role};
  return ok_status();
}

}  // namespace

GangReading read_mortise_gang(const Pod& pod, const GroupObjects& objects) {
  const auto name = pod.annotations.find(std::string(kGangNameAnnotation));
  const auto minimum = pod.annotations.find(std::string(kGangMinMemberAnnotation));
  if (name == pod.annotations.end()) {
    if (minimum == pod.annotations.end()) return no_gang();
    return Error{"annotation " + minimum->first + " without " + std::string(kGangNameAnnotation)};
  }
  if (name->second.empty()) return Error{"annotation " + name->first + " is empty"};
  GangRef gang = named_gang(pod, name->second);
  if (minimum == pod.annotations.end()) {
    const Status taken = take_size_of_maker(pod, objects, gang);
    if (!taken) return taken.error();
    return std::optional(std::move(gang));
  }
  const auto members = parse_members("annotation " + minimum->first, minimum->second);
  if (!members) return members.error();
  gang.minimum = *members;
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
