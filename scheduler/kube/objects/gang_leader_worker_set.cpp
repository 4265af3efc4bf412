#include <string>

#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_keys.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {

GangReading read_leader_worker_set_gang(const Pod& pod, const GroupObjects& objects) {
  const std::string prefix = "leaderworkerset.sigs.k8s.io/";
  const std::string name = label(pod, prefix + "name");
  if (name.empty()) return no_gang();
  const std::string group = label(pod, prefix + "group-index");
  if (group.empty()) return Error{"label " + prefix + "group-index is missing"};
  const auto size = pod.annotations.find(prefix + "size");
  if (size == pod.annotations.end()) return Error{"annotation " + prefix + "size is missing"};
  const auto members = parse_members("annotation " + size->first, size->second);
  if (!members) return members.error();

  GangRef gang = named_gang(pod, name);
  // A group of the next revision is another gang, though it has the same index.
  gang.identity += "/" + group + "/" + label(pod, prefix + "template-revision-hash");
  gang.role = label(pod, prefix + "worker-index") == "0" ? "leader" : "worker";
  gang.total = *members;
  gang.minimum = *members;
  // Where workers are made only once the leader runs or has its place, nobody may wait for them.
  const GroupObject* set = objects.find(GroupKind::kLeaderWorkerSet, namespace_of(pod), name);
  if (pod.annotations.contains(keys::kLwsExclusive) || (set != nullptr && set->one_by_one)) gang.minimum = 1;
  gang.roles = {{"leader", 1, {}}, {"worker", gang.minimum - 1, {}}};
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
