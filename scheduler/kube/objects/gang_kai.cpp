#include <algorithm>
#include <string>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {

GangReading read_kai_gang(const Pod& pod, const GroupObjects& objects) {
  std::string name = annotation(pod, "pod-group-name");
  if (name.empty()) name = label(pod, "pod-group.scheduling.run.ai/name");
  if (name.empty()) return no_gang();
  GangRef gang = named_gang(pod, name);
  const Status taken = take_group(pod, objects, GroupKind::kKaiPodGroup, name, gang);
  if (!taken) return taken.error();
  gang.role = label(pod, "kai.scheduler/subgroup-name");
  if (!gang.waits_for.empty() || gang.roles.empty()) return std::optional(std::move(gang));
  const auto role =
      std::find_if(gang.roles.begin(), gang.roles.end(), [&](const GangRole& r) { return r.name == gang.role; });
  if (role == gang.roles.end()) {
    return Error{"label kai.scheduler/subgroup-name is " + quote(gang.role) + "; its PodGroup has no such sub-group"};
  }
  gang.topology.insert(gang.topology.end(), role->topology.begin(), role->topology.end());
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
