#pragma once

#include <map>
#include <string>

#include "scheduler/kube/client/answer.h"

namespace mortise::kube {

struct Binding {
  std::string ns;
  std::string pod;
  std::string uid;  ///< a pod of the same name that was made later is then refused
  std::string node;
  std::map<std::string, std::string> annotations;  ///< become the pod's in the same write
};

/// Binds a pod to a node. kConflict: it is bound already, being deleted, not let through yet (scheduling gates), or
/// has another UID; kNotFound: it is gone. After kConflict and kUnknown, read_pod tells which.
Done bind_pod(ApiClient& client, const Binding& binding, const CallOptions& call = {});

}  // namespace mortise::kube
