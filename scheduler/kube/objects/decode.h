#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/node.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

/// As parse_pod and parse_node, from a document that is parsed already.
Result<Pod> decode_pod(const nlohmann::json& document);
Result<Node> decode_node(const nlohmann::json& document);

/// The ownerReferences of an object's metadata.
std::vector<OwnerReference> decode_owners(const Field& metadata);

}  // namespace mortise::kube
