#include <algorithm>
#include <string>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {

GangReading read_native_pod_group(const Pod& pod, const GroupObjects& objects) {
  if (pod.pod_group.empty()) return no_gang();
  GangRef gang = named_gang(pod, pod.pod_group);
  const Status taken = take_group(pod, objects, GroupKind::kNativePodGroup, pod.pod_group, gang);
  if (!taken) return taken.error();
  // Under the basic policy each pod starts for itself, but all in the domain that the group asks for.
  if (!gang.topology.empty()) gang.minimum = std::max(gang.minimum, 1);
  return std::optional(std::move(gang));
}

GangReading read_native_workload(const Pod& pod, const GroupObjects& objects) {
  const WorkloadRef& workload = pod.workload;
  if (workload.name.empty()) return no_gang();
  if (workload.pod_group.empty()) return Error{"spec.workloadRef names no podGroup"};
  GangRef gang = named_gang(pod, workload.name);
  gang.identity += "/" + workload.pod_group + "/" + workload.replica_key;
  const Status taken = take_group(pod, objects, GroupKind::kWorkload, workload.name, gang);
  if (!taken) return taken.error();
  if (!gang.waits_for.empty()) return std::optional(std::move(gang));
  const GangRole* part = objects.find(GroupKind::kWorkload, namespace_of(pod), workload.name)->role(workload.pod_group);
  if (part == nullptr) {
    gang.waits_for = "waits for its group object Workload " + one_line(namespace_of(pod)) + "/" +
                     one_line(workload.name) + " to have pod group " + quote(workload.pod_group);
  } else {
    gang.minimum = part->minimum;
  }
  gang.roles.clear();  // its pod groups are gangs, each for itself
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
