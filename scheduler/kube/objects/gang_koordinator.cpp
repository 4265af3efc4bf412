#include <algorithm>
#include <string>

#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_keys.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {
namespace {

/// What the pod's annotations say counts; its PodGroup is asked only for a minimum that they do not give.
Status read_sizes(const Pod& pod, const GroupObjects& objects, const std::string& name, GangRef& gang) {
  const auto minimum = pod.annotations.find("gang.scheduling.koordinator.sh/min-available");
  if (minimum == pod.annotations.end()) return take_group(pod, objects, GroupKind::kPodGroup, name, gang);
  const auto members = parse_members("annotation " + minimum->first, minimum->second);
  if (!members) return members.error();
  gang.minimum = *members;
  gang.total = *members;
  if (const auto total = pod.annotations.find(keys::kKoordinatorTotal); total != pod.annotations.end()) {
    const auto all = parse_members("annotation " + total->first, total->second);
    if (!all) return all.error();
    if (*all < gang.minimum) return Error{"annotation " + total->first + " is less than " + minimum->first};
    gang.total = *all;
  }
  if (const auto groups = pod.annotations.find(keys::kKoordinatorGroups); groups != pod.annotations.end()) {
    auto together = parse_gang_list("annotation " + groups->first, groups->second);
    if (!together) return together.error();
    gang.together = *std::move(together);
  }
  return ok_status();
}

}  // namespace

GangReading read_koordinator_gang(const Pod& pod, const GroupObjects& objects) {
  const std::string name = annotation(pod, "gang.scheduling.koordinator.sh/name");
  if (name.empty()) return no_gang();
  GangRef gang = named_gang(pod, name);
  const Status read = read_sizes(pod, objects, name, gang);
  if (!read) return read.error();
  if (gang.total == 0) gang.total = gang.minimum;
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
