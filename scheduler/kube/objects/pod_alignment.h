#pragma once

#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/placement/request.h"

namespace mortise::kube {

/// Pod annotations: what the pod wants of the inside of its node.
inline constexpr std::string_view kTopologyPolicyAnnotation = "mortise.dev/topology-policy";
inline constexpr std::string_view kNvlinkAnnotation = "mortise.dev/nvlink";

/// Requests in spec.resources after the API server's defaulting: one that is missing comes from the containers (and is
/// not in this list), else from the limit.
ResourceList pod_level_requests(const Pod& pod);

/// Fills what kubelet's alignment of the pod depends on beyond the counts of its containers, which `request` holds
/// already: QoS class, pod-level resources and the annotations above. An unknown value is an error that names the
/// allowed ones.
Status add_alignment(const Pod& pod, placement::PodRequest& request);

}  // namespace mortise::kube
