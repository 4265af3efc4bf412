#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/gang_objects.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::sim {

/// The pods that the controller of a workload makes, and objects that it makes beside them.
struct WorkloadPods {
  std::vector<kube::Pod> pods;
  std::vector<kube::GroupObject> groups;
};

/// Whether the pods of objects of this kind are known.
bool makes_pods(std::string_view api_version, std::string_view kind);
/// Their kinds, for messages.
std::string pod_makers();

/// Names, labels, annotations and owners are those that the controllers document: Job (Kubernetes), JobSet,
/// LeaderWorkerSet, the jobs of Kubeflow's training operator v1 and of its MPI operator, Volcano's Job with its
/// PodGroup, RayCluster. The object has a kind for which makes_pods is true. Refuses more than `most` pods.
Result<WorkloadPods> workload_pods(const nlohmann::json& object, std::size_t most);

}  // namespace mortise::sim
