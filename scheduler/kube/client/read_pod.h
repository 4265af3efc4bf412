#pragma once

#include <string>

#include "scheduler/kube/client/answer.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

/// The latest state of a pod, past every cache.
Answer<Pod> read_pod(ApiClient& client, const std::string& ns, const std::string& name, const CallOptions& call = {});

}  // namespace mortise::kube
