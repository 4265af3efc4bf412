#include <string>

#include "scheduler/kube/objects/gang_readers.h"

namespace mortise::kube {
namespace {

bool is_kubeflow(GroupKind kind) {
  return kind >= GroupKind::kTfJob && kind <= GroupKind::kMxJob;
}

/// The kind of job whose label the pod has. MPI's launcher is made through a Job, and only its label tells.
std::optional<GroupKind> job_kind(const Pod& pod) {
  const std::string operator_name = label(pod, "training.kubeflow.org/operator-name");
  if (operator_name == "mpi-operator" || operator_name == "mpijob-controller") return GroupKind::kMpiJob;
  const OwnerReference* owner = controller_of(pod);
  if (owner == nullptr) return std::nullopt;
  const auto kind = find_group_kind(owner->api_version, owner->kind);
  return kind && is_kubeflow(*kind) ? kind : std::nullopt;
}

}  // namespace

GangReading read_kubeflow_gang(const Pod& pod, const GroupObjects& objects) {
  const std::string name = label(pod, "training.kubeflow.org/job-name");
  if (name.empty()) return no_gang();
  const auto kind = job_kind(pod);
  if (!kind) return no_gang();
  GangRef gang = named_gang(pod, name);
  gang.identity = std::string(group_kind_name(*kind)) + "/" + gang.identity;
  const Status taken = take_group(pod, objects, *kind, name, gang);
  if (!taken) return taken.error();
  gang.role = label(pod, "training.kubeflow.org/replica-type");
  if (gang.role.empty()) gang.role = label(pod, "training.kubeflow.org/job-role");
  return std::optional(std::move(gang));
}

}  // namespace mortise::kube
