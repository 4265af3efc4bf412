#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/placement/request.h"

namespace mortise::kube {

/// Resource name -> quantity as written.
using ResourceList = std::map<std::string, std::string>;

struct Container {
  std::string name;
  placement::ContainerKind kind = placement::ContainerKind::kApp;
  ResourceList requests;
  ResourceList limits;
};

/// One entry of metadata.ownerReferences.
struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;

  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

/// The PodScheduled condition.
struct ScheduledCondition {
  std::string status;  ///< `True`, `False`, `Unknown`; empty: no such condition
  std::string reason;
  std::string message;
};

/// spec.workloadRef, which Kubernetes 1.35 has in place of spec.schedulingGroup.
struct WorkloadRef {
  std::string name;  ///< empty: none
  std::string pod_group;
  std::string replica_key;
};

/// The fields of a core/v1 Pod that we use.
struct Pod {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string node_name;  ///< empty: not bound
  std::string phase;
  std::string qos_class;  ///< status.qosClass
  bool deleting = false;  ///< metadata.deletionTimestamp is set
  bool preempted =
      false;           ///< kube-scheduler has chosen it to go: condition DisruptionTarget, reason PreemptionByScheduler
  bool gated = false;  ///< spec.schedulingGates has any: kube-scheduler leaves it alone
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> node_selector;
  std::vector<Container> containers;  ///< init containers first, in declaration order
  ResourceList overhead;
  ResourceList requests;  ///< of the pod as a whole (spec.resources)
  ResourceList limits;
  std::vector<OwnerReference> owners;
  std::string scheduler_name;
  std::int32_t priority = 0;
  std::string preemption_policy;  ///< `PreemptLowerPriority` or `Never`; empty: not said
  std::string pod_group;          ///< spec.schedulingGroup.podGroupName
  WorkloadRef workload;
  std::string nominated_node_name;  ///< of status
  std::string start_time;           ///< of status, as written
  ScheduledCondition scheduled;

  /// Succeeded or Failed: holds nothing any more.
  bool terminal() const { return phase == "Succeeded" || phase == "Failed"; }
  std::string key() const { return ns + "/" + name; }
};

/// Reads a Pod from JSON text. Missing and null fields are empty; a field of the wrong type is an error.
Result<Pod> parse_pod(std::string_view json);

/// What the pod asks for. An error is the pod's own fault: no node can ever take it.
Result<placement::PodRequest> pod_request(const Pod& pod);

}  // namespace mortise::kube
