#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/gang.h"

namespace mortise::kube {

/// What one convention makes of a pod; empty: the pod does not use it.
using GangReading = Result<std::optional<GangRef>>;

GangReading read_mortise_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_native_pod_group(const Pod& pod, const GroupObjects& objects);
GangReading read_native_workload(const Pod& pod, const GroupObjects& objects);
GangReading read_scheduler_plugins_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_lightweight_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_volcano_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_koordinator_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_kai_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_kueue_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_hived_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_yunikorn_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_leader_worker_set_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_kubeflow_gang(const Pod& pod, const GroupObjects& objects);
GangReading read_ray_gang(const Pod& pod, const GroupObjects& objects);

inline GangReading no_gang() {
  return std::optional<GangRef>();
}

/// The pod's namespace; default where it says none.
std::string namespace_of(const Pod& pod);

/// The label or annotation of this name; empty: missing.
std::string label(const Pod& pod, std::string_view key);
std::string annotation(const Pod& pod, std::string_view key);

/// The owner that controls the pod, or null.
const OwnerReference* controller_of(const Pod& pod);

/// A gang named NAMESPACE/NAME of the pod's namespace.
GangRef named_gang(const Pod& pod, const std::string& name);

/// Fills in what the group object says. While there is none, the gang waits for it; one that is invalid is an error.
Status take_group(const Pod& pod, const GroupObjects& objects, GroupKind kind, const std::string& name, GangRef& gang);

/// Sets what the pod's own annotations ask of the topology.
Status read_topology_asks(const Pod& pod, GangRef& gang);

}  // namespace mortise::kube
