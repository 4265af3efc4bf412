#include "scheduler/kube/objects/gang.h"

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {
namespace {

struct Row {
  GangConventionInfo info;
  GangReading (*read)(const Pod& pod, const GroupObjects& objects);
};

using Is = GangConvention;
constexpr std::array<Row, 14> kRows = {{
    {{Is::kMortise, "mortise", "annotation mortise.dev/gang-name"}, read_mortise_gang},
    {{Is::kNativePodGroup, "native-pod-group", "spec.schedulingGroup (Kubernetes 1.36 on)"}, read_native_pod_group},
    {{Is::kNativeWorkload, "native-workload", "spec.workloadRef (Kubernetes 1.35)"}, read_native_workload},
    {{Is::kSchedulerPlugins, "scheduler-plugins",
      "label scheduling.x-k8s.io/pod-group or pod-group.scheduling.sigs.k8s.io"},
     read_scheduler_plugins_gang},
    {{Is::kLightweight, "lightweight", "labels pod-group.scheduling.x-k8s.io/name (or sigs.k8s.io) and /min-available"},
     read_lightweight_gang},
    {{Is::kVolcano, "volcano", "annotation scheduling.k8s.io/group-name or scheduling.volcano.sh/group-name"},
     read_volcano_gang},
    {{Is::kKoordinator, "koordinator", "annotation gang.scheduling.koordinator.sh/name"}, read_koordinator_gang},
    {{Is::kKai, "kai", "annotation pod-group-name or label pod-group.scheduling.run.ai/name"}, read_kai_gang},
    {{Is::kKueue, "kueue", "label kueue.x-k8s.io/pod-group-name"}, read_kueue_gang},
    {{Is::kHived, "hived", "affinityGroup in annotation hivedscheduler.microsoft.com/pod-scheduling-spec"},
     read_hived_gang},
    {{Is::kYunikorn, "yunikorn", "annotation yunikorn.apache.org/task-group-name"}, read_yunikorn_gang},
    {{Is::kLeaderWorkerSet, "leader-worker-set", "label leaderworkerset.sigs.k8s.io/name"},
     read_leader_worker_set_gang},
    {{Is::kKubeflow, "kubeflow", "label training.kubeflow.org/job-name and its owner"}, read_kubeflow_gang},
    {{Is::kRay, "ray", "label ray.io/gang-scheduling-enabled on the pod or on its RayCluster"}, read_ray_gang},
}};

constexpr auto kInfos = [] {
  std::array<GangConventionInfo, kRows.size()> infos{};
  for (std::size_t i = 0; i < kRows.size(); ++i) infos[i] = kRows[i].info;
  return infos;
}();

std::string value_of(const std::map<std::string, std::string>& values, std::string_view key) {
  const auto found = values.find(std::string(key));
  return found == values.end() ? std::string() : found->second;
}

constexpr std::size_t kMaxUidBytes = 128;
constexpr std::size_t kMaxNameBytes = 253;  // of objects and namespaces
constexpr std::size_t kMaxLabelBytes = 63;  // of a label's value

Status check_length(std::string_view what, std::size_t bytes, std::size_t most) {
  if (bytes <= most) return ok_status();
  return Error{std::string(what) + " has " + std::to_string(bytes) + " bytes; Kubernetes allows " +
               std::to_string(most)};
}

/// Of names that are joined by slashes.
std::size_t longest_part(std::string_view names) {
  std::size_t longest = 0;
  for (std::size_t from = 0; from <= names.size();) {
    const std::size_t to = std::min(names.find('/', from), names.size());
    longest = std::max(longest, to - from);
    from = to + 1;
  }
  return longest;
}

std::size_t longest_value(const std::map<std::string, std::string>& values) {
  std::size_t longest = 0;
  for (const auto& [key, value] : values) longest = std::max(longest, value.size());
  return longest;
}

/// What no API server takes comes from somebody else, and must not fill our memory.
Status check_lengths(const Pod& pod, const GangRef& gang) {
  std::size_t gang_name = std::max(longest_part(gang.identity), gang.role.size());
  for (const std::string& name : gang.together) gang_name = std::max(gang_name, longest_part(name));
  const std::array<Status, 6> checks = {
      check_length("the UID", pod.uid.size(), kMaxUidBytes),
      check_length("the pod's name", pod.name.size(), kMaxNameBytes),
      check_length("the namespace", pod.ns.size(), kMaxNameBytes),
      check_length("a label's value", longest_value(pod.labels), kMaxLabelBytes),
      check_length("a nodeSelector's value", longest_value(pod.node_selector), kMaxLabelBytes),
      check_length("the gang's name", gang_name, kMaxNameBytes),
  };
  const auto wrong = std::find_if(checks.begin(), checks.end(), [](const Status& check) { return !check.ok(); });
  return wrong == checks.end() ? ok_status() : *wrong;
}

/// A gang of one: to place it is to place the pod.
bool says_nothing(const GangRef& gang) {
  return gang.minimum == 1 && gang.total <= 1 && gang.topology.empty() && gang.together.empty();
}

}  // namespace

std::string GangRef::key() const {
  return std::string(gang_convention_name(convention)) + ":" + identity;
}

std::span<const GangConventionInfo> gang_conventions() {
  return kInfos;
}

std::string_view gang_convention_name(GangConvention convention) {
  return std::find_if(kInfos.begin(), kInfos.end(), [&](const auto& info) { return info.convention == convention; })
      ->name;
}

std::string namespace_of(const Pod& pod) {
  return pod.ns.empty() ? "default" : pod.ns;
}

std::string label(const Pod& pod, std::string_view key) {
  return value_of(pod.labels, key);
}

std::string annotation(const Pod& pod, std::string_view key) {
  return value_of(pod.annotations, key);
}

const OwnerReference* controller_of(const Pod& pod) {
  const auto found = std::find_if(pod.owners.begin(), pod.owners.end(), [](const auto& o) { return o.controller; });
  return found == pod.owners.end() ? nullptr : &*found;
}

GangRef named_gang(const Pod& pod, const std::string& name) {
  GangRef gang;
  gang.identity = namespace_of(pod) + "/" + name;
  return gang;
}

Status take_group(const Pod& pod, const GroupObjects& objects, GroupKind kind, const std::string& name, GangRef& gang) {
  const std::string what =
      std::string(group_kind_name(kind)) + " " + one_line(namespace_of(pod)) + "/" + one_line(name);
  const GroupObject* group = objects.find(kind, namespace_of(pod), name);
  if (group == nullptr) {
    gang.waits_for = "waits for its group object " + what;
    return ok_status();
  }
  if (!group->invalid.empty()) return Error{"its " + what + ": " + group->invalid};
  gang.object = {group->api_version, std::string(group_kind_name(kind)), group->name, group->uid};
  gang.minimum = group->minimum;
  gang.total = group->total;
  gang.roles = group->roles;
  gang.roles_needed = group->roles_needed;
  gang.topology = group->topology;
  gang.priority_class = group->priority_class;
  gang.priority = group->priority;
  gang.together = group->together;
  return ok_status();
}

Result<std::optional<GangRef>> recognise_gang(const Pod& pod, const GroupObjects& objects) {
  for (const Row& row : kRows) {
    GangReading reading = row.read(pod, objects);
    if (!reading) return Error{"gang by " + std::string(row.info.name) + ": " + reading.message()};
    if (!reading->has_value()) continue;
    GangRef& gang = **reading;
    gang.convention = row.info.convention;
    if (gang.waits_for.empty() && gang.minimum == 0) return no_gang();  // its group says that each pod is for itself
    if (const Status lengths = check_lengths(pod, gang); !lengths) {
      return Error{"gang by " + std::string(row.info.name) + ": " + lengths.message()};
    }
    const Status asks = read_topology_asks(pod, gang);
    if (!asks) return asks.error();
    if (says_nothing(gang)) return no_gang();
    return reading;
  }
  return no_gang();
}

Result<std::int32_t> gang_priority(const GangRef& gang, const GroupObjects& objects,
                                   std::span<const std::int32_t> members) {
  if (gang.priority) return *gang.priority;
  if (!gang.priority_class.empty()) {
    const GroupObject* found = objects.find(GroupKind::kPriorityClass, {}, gang.priority_class);
    if (found == nullptr) return Error{"its group's PriorityClass " + quote(gang.priority_class) + " does not exist"};
    if (!found->invalid.empty()) return Error{"PriorityClass " + quote(gang.priority_class) + ": " + found->invalid};
    return found->priority.value_or(0);
  }
  const auto [low, high] = std::minmax_element(members.begin(), members.end());
  if (low == members.end()) return 0;
  if (*low != *high) return Error{mixed_priorities(*low, *high)};
  return *low;
}

std::string mixed_priorities(std::int32_t low, std::int32_t high) {
  return "members of one gang have priorities " + std::to_string(low) + " and " + std::to_string(high) +
         "; give them one, or their group a priority class";
}

}  // namespace mortise::kube
