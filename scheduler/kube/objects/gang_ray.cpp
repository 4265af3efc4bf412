#include <string>

#include "scheduler/kube/objects/gang_keys.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {

GangReading read_ray_gang(const Pod& pod, const GroupObjects& objects) {
  const std::string name = label(pod, "ray.io/cluster");
  if (name.empty()) return no_gang();
  const GroupObject* cluster = objects.find(GroupKind::kRayCluster, namespace_of(pod), name);
  if (!pod.labels.contains(keys::kRayGang) && (cluster == nullptr || !cluster->opted_in)) return no_gang();
  GangRef gang = named_gang(pod, name);
  const Status taken = take_group(pod, objects, GroupKind::kRayCluster, name, gang);
  if (!taken) return taken.error();
  gang.role = label(pod, "ray.io/group");
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
