#include "scheduler/kube/objects/gang_objects.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

struct Row {
  GroupKindInfo info;
  bool namespaced;
  void (*decode)(const Field& root, GroupObject& object);
};

constexpr std::string_view kKubeflow = "kubeflow.org";
constexpr std::array<Row, 18> kRows = {{
    {{GroupKind::kNativePodGroup, "scheduling.k8s.io", "PodGroup", "podgroups"}, true, decode_native_pod_group},
    {{GroupKind::kWorkload, "scheduling.k8s.io", "Workload", "workloads"}, true, decode_workload},
    {{GroupKind::kPodGroup, "scheduling.x-k8s.io", "PodGroup", "podgroups"}, true, decode_pod_group},
    {{GroupKind::kPodGroup, "scheduling.sigs.k8s.io", "PodGroup", "podgroups"}, true, decode_pod_group},
    {{GroupKind::kVolcanoPodGroup, "scheduling.volcano.sh", "PodGroup", "podgroups"}, true, decode_volcano_pod_group},
    {{GroupKind::kKaiPodGroup, "scheduling.run.ai", "PodGroup", "podgroups"}, true, decode_kai_pod_group},
    {{GroupKind::kTfJob, kKubeflow, "TFJob", "tfjobs"}, true, decode_kubeflow_job},
    {{GroupKind::kPyTorchJob, kKubeflow, "PyTorchJob", "pytorchjobs"}, true, decode_kubeflow_job},
    {{GroupKind::kMpiJob, kKubeflow, "MPIJob", "mpijobs"}, true, decode_kubeflow_job},
    {{GroupKind::kXgBoostJob, kKubeflow, "XGBoostJob", "xgboostjobs"}, true, decode_kubeflow_job},
    {{GroupKind::kPaddleJob, kKubeflow, "PaddleJob", "paddlejobs"}, true, decode_kubeflow_job},
    {{GroupKind::kJaxJob, kKubeflow, "JAXJob", "jaxjobs"}, true, decode_kubeflow_job},
    {{GroupKind::kMxJob, kKubeflow, "MXJob", "mxjobs"}, true, decode_kubeflow_job},
    {{GroupKind::kJobSet, "jobset.x-k8s.io", "JobSet", "jobsets"}, true, decode_job_set},
    {{GroupKind::kJob, "batch", "Job", "jobs"}, true, decode_job},
    {{GroupKind::kLeaderWorkerSet, "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets"},
     true,
     decode_leader_worker_set},
    {{GroupKind::kRayCluster, "ray.io", "RayCluster", "rayclusters"}, true, decode_ray_cluster},
    {{GroupKind::kPriorityClass, "scheduling.k8s.io", "PriorityClass", "priorityclasses"},
     false,
     decode_priority_class},
}};

constexpr auto kInfos = [] {
  std::array<GroupKindInfo, kRows.size()> infos{};
  for (std::size_t i = 0; i < kRows.size(); ++i) infos[i] = kRows[i].info;
  return infos;
}();

const Row* find_row(std::string_view api_version, std::string_view kind) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return nullptr;
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) {
    return row.info.api_group == api_version.substr(0, slash) && row.info.name == kind;
  });
  return found == kRows.end() ? nullptr : &*found;
}

}  // namespace

const GangRole* GroupObject::role(std::string_view role_name) const {
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const GangRole& r) { return r.name == role_name; });
  return found == roles.end() ? nullptr : &*found;
}

std::span<const GroupKindInfo> group_kinds() {
  return kInfos;
}

std::string_view group_kind_name(GroupKind kind) {
  return std::find_if(kInfos.begin(), kInfos.end(), [&](const GroupKindInfo& info) { return info.kind == kind; })->name;
}

std::optional<GroupKind> find_group_kind(std::string_view api_version, std::string_view kind) {
  const Row* row = find_row(api_version, kind);
  return row == nullptr ? std::nullopt : std::optional(row->info.kind);
}

std::int32_t add_members(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{a} + b, kMaxGangMembers + 1));
}

Result<GroupObject> decode_group_object(const nlohmann::json& document) {
  std::optional<Error> mistake;
  const Field root(document, mistake);
  const std::string api_version = root.member("apiVersion").text();
  const std::string kind = root.member("kind").text();
  GroupObject object;
  object.api_version = api_version;
  object.ns = root.member("metadata").member("namespace").text();
  object.name = root.member("metadata").member("name").text();
  object.uid = root.member("metadata").member("uid").text();
  if (mistake) return *mistake;
  const Row* row = find_row(api_version, kind);
  if (row == nullptr) return Error{"kind " + quote(kind) + " of " + quote(api_version) + " gives no gang its size"};
  if (object.name.empty()) return Error{"a " + kind + " without metadata.name"};
  object.kind = row->info.kind;
  if (!row->namespaced) {
    object.ns.clear();
  } else if (object.ns.empty()) {
    object.ns = "default";
  }
  row->decode(root, object);
  if (mistake) object.invalid = mistake->message;
  if (object.invalid.empty() && std::max(object.minimum, object.total) > kMaxGangMembers) {
    object.invalid = "asks for more than " + std::to_string(kMaxGangMembers) + " pods";
  }
  return object;
}

Result<GroupObject> parse_group_object(std::string_view json) {
  const Result<nlohmann::json> document = parse_json_text(json, {});
  if (!document) return document.error();
  return decode_group_object(*document);
}

void GroupObjects::put(GroupObject object) {
  Key key{object.kind, object.ns, object.name};
  objects_.insert_or_assign(std::move(key), std::move(object));
}

void GroupObjects::remove(GroupKind kind, std::string_view ns, std::string_view name) {
  objects_.erase(Key{kind, std::string(ns), std::string(name)});
}

const GroupObject* GroupObjects::find(GroupKind kind, std::string_view ns, std::string_view name) const {
  const auto found = objects_.find(Key{kind, std::string(ns), std::string(name)});
  return found == objects_.end() ? nullptr : &found->second;
}

}  // namespace mortise::kube
