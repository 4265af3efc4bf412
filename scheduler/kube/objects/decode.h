#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/node.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

/// As parse_pod and parse_node, from a document that is parsed already.
Result<Pod> decode_pod(const nlohmann::json& document);
Result<Node> decode_node(const nlohmann::json& document);

}  // namespace mortise::kube
