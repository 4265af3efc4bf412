#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "scheduler/kube/objects/gang_decode.h"
#include "scheduler/kube/objects/gang_keys.h"

namespace mortise::kube {
namespace {

/// The pods that a Job runs at once.
std::int32_t job_pods(const Field& spec) {
  const std::int32_t parallelism = spec.member("parallelism").count(0, kMaxGangMembers).value_or(1);
  const auto completions = spec.member("completions").count(0, kMaxGangMembers);
  return completions ? std::min(parallelism, *completions) : parallelism;
}

void sum_roles(GroupObject& object) {
  for (const GangRole& role : object.roles) object.total = add_members(object.total, role.minimum);
  object.minimum = object.total;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The map from replica type to its replicas: pytorchReplicaSpecs, mpiReplicaSpecs, ...
void decode_replica_specs(const Field& spec, GroupObject& object) {
  for (const auto& [key, specs] : spec.members()) {
    if (!key.ends_with("ReplicaSpecs")) continue;
    for (const auto& [type, replicas] : specs.members()) {
      object.roles.push_back({lower_case(type), replicas.member("replicas").count(0, kMaxGangMembers).value_or(1), {}});
    }
  }
}

std::int32_t ray_workers(const Field& group, bool autoscaled) {
  if (group.member("suspend").flag()) return 0;
  const std::int32_t least = group.member("minReplicas").count(0, kMaxGangMembers).value_or(0);
  const auto most = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(group.member("maxReplicas").whole(32).value_or(kMaxGangMembers), 0, kMaxGangMembers));
  const std::int32_t wanted = group.member("replicas").count(0, kMaxGangMembers).value_or(least);
  const std::int32_t replicas = std::min(most, autoscaled ? least : std::max(least, wanted));
  const std::int32_t hosts = group.member("numOfHosts").count(1, kMaxGangMembers).value_or(1);
  return static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{replicas} * hosts, kMaxGangMembers + 1));
}

}  // namespace

void decode_kubeflow_job(const Field& root, GroupObject& object) {
  const Field spec = root.member("spec");
  decode_replica_specs(spec, object);
  sum_roles(object);
  const Field policy = spec.member("runPolicy").member("schedulingPolicy");
  object.priority_class = policy.member("priorityClass").text();
  if (const auto least = policy.member("minAvailable").count(1, kMaxGangMembers)) {
    if (*least > object.total) {
      object.invalid =
          "spec.runPolicy.schedulingPolicy.minAvailable is more than its " + std::to_string(object.total) + " replicas";
    }
    object.minimum = *least;
    // Which role may be short is not said.
    if (*least < object.total) {
      for (GangRole& role : object.roles) role.minimum = 0;
    }
  }
  if (spec.member("launcherCreationPolicy").text() != "WaitForWorkersReady") return;
  // The launcher does not exist before the workers run, so they cannot wait for it.
  std::int32_t others = object.total;
  for (const auto& [type, replicas] : spec.member("mpiReplicaSpecs").members()) {
    if (type == "Launcher") others -= replicas.member("replicas").count(0, kMaxGangMembers).value_or(1);
  }
  object.minimum = std::min(object.minimum, std::max(others, 0));
  for (GangRole& role : object.roles) {
    if (role.name == "launcher") role.minimum = 0;
  }
}

void decode_job_set(const Field& root, GroupObject& object) {
  const Field spec = root.member("spec");
  object.one_by_one = spec.member("startupPolicy").member("startupPolicyOrder").text() == "InOrder";
  for (const Field& job : spec.member("replicatedJobs").items()) {
    if (!job.member("dependsOn").items().empty()) object.one_by_one = true;
    const std::int64_t jobs = job.member("replicas").count(0, kMaxGangMembers).value_or(1);
    const std::int64_t pods = jobs * job_pods(job.member("template").member("spec"));
    object.roles.push_back(
        {job.member("name").text(), static_cast<std::int32_t>(std::min<std::int64_t>(pods, kMaxGangMembers + 1)), {}});
  }
  sum_roles(object);
}

void decode_job(const Field& root, GroupObject& object) {
  object.total = job_pods(root.member("spec"));
  object.minimum = object.total;
}

void decode_leader_worker_set(const Field& root, GroupObject& object) {
  const Field spec = root.member("spec");
  object.total = spec.member("leaderWorkerTemplate").member("size").count(1, kMaxGangMembers).value_or(1);
  const auto annotations = root.member("metadata").member("annotations").texts();
  object.one_by_one = spec.member("startupPolicy").text() == "LeaderReady" || annotations.contains(keys::kLwsExclusive);
  object.minimum = object.one_by_one ? 1 : object.total;
}

void decode_ray_cluster(const Field& root, GroupObject& object) {
  object.opted_in = root.member("metadata").member("labels").texts().contains(keys::kRayGang);
  const Field spec = root.member("spec");
  const bool autoscaled = spec.member("enableInTreeAutoscaling").flag();
  object.roles.push_back({"headgroup", 1, {}});
  for (const Field& group : spec.member("workerGroupSpecs").items()) {
    object.roles.push_back({group.member("groupName").text(), ray_workers(group, autoscaled), {}});
  }
  sum_roles(object);
  if (autoscaled) object.total = 0;
}

}  // namespace mortise::kube
