#include <string>

#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {

GangReading read_volcano_gang(const Pod& pod, const GroupObjects& objects) {
  for (const char* key : {"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"}) {
    const std::string name = annotation(pod, key);
    if (name.empty()) continue;
    GangRef gang = named_gang(pod, name);
    const Status taken = take_group(pod, objects, GroupKind::kVolcanoPodGroup, name, gang);
    if (!taken) return taken.error();
    gang.role = annotation(pod, "volcano.sh/task-spec");
    if (gang.role.empty()) gang.role = label(pod, "volcano.sh/task-spec");
    return std::optional(std::move(gang));
  }
  return no_gang();
}

}  // namespace mortise::kube
