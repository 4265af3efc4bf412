#include <string>

#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {

GangReading read_scheduler_plugins_gang(const Pod& pod, const GroupObjects& objects) {
  for (const char* key : {"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"}) {
    const std::string name = label(pod, key);
    if (name.empty()) continue;
    GangRef gang = named_gang(pod, name);
    const Status taken = take_group(pod, objects, GroupKind::kPodGroup, name, gang);
    if (!taken) return taken.error();
    return std::optional(std::move(gang));
  }
  return no_gang();
}

GangReading read_lightweight_gang(const Pod& pod, const GroupObjects& objects) {
  for (const std::string prefix : {"pod-group.scheduling.x-k8s.io/", "pod-group.scheduling.sigs.k8s.io/"}) {
    const std::string name = label(pod, prefix + "name");
    if (name.empty()) continue;
    GangRef gang = named_gang(pod, name);
    const auto minimum = pod.labels.find(prefix + "min-available");
    if (minimum == pod.labels.end()) {
      const Status taken = take_group(pod, objects, GroupKind::kPodGroup, name, gang);
      if (!taken) return taken.error();
      return std::optional(std::move(gang));
    }
    const auto members = parse_members("label " + minimum->first, minimum->second);
    if (!members) return members.error();
    gang.minimum = *members;
    return std::optional(std::move(gang));
  }
  return no_gang();
}

}  // namespace mortise::kube
