#pragma once

#include <string>

#include "scheduler/kube/client/answer.h"

namespace mortise::kube {

/// Has a pod deleted as far as PodDisruptionBudgets allow it (policy/v1 Eviction); one of the same name with another
/// UID is not. kConflict: it has another UID; kNotFound: it is gone; kLater: a budget does not allow it now.
Done evict_pod(ApiClient& client, const std::string& ns, const std::string& pod, const std::string& uid,
               const CallOptions& call = {});

}  // namespace mortise::kube
