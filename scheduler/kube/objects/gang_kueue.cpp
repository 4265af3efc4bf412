#include <string>

#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {

GangReading read_kueue_gang(const Pod& pod, const GroupObjects&) {
  const std::string name = label(pod, "kueue.x-k8s.io/pod-group-name");
  if (name.empty()) return no_gang();
  // Kueue marks so the pods of StatefulSets and the like, of which the second may come only when the first runs.
  if (annotation(pod, "kueue.x-k8s.io/pod-group-fast-admission") == "true") return no_gang();
  const auto count = pod.annotations.find("kueue.x-k8s.io/pod-group-total-count");
  if (count == pod.annotations.end()) {
    return Error{"annotation kueue.x-k8s.io/pod-group-total-count is missing"};
  }
  const auto members = parse_members("annotation " + count->first, count->second);
  if (!members) return members.error();
  GangRef gang = named_gang(pod, name);
  gang.role = annotation(pod, "kueue.x-k8s.io/role-hash");
  gang.minimum = *members;
  gang.total = *members;
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
