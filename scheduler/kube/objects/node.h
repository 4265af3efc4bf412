#pragma once

#include <map>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/placement/node_state.h"

namespace mortise::kube {

/// The fields of a core/v1 Node that we use.
struct Node {
  std::string name;
  std::string uid;
  std::string resource_version;
  bool unschedulable = false;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  ResourceList capacity;
  ResourceList allocatable;
  std::string kubelet_version;  ///< status.nodeInfo.kubeletVersion
};

Result<Node> parse_node(std::string_view json);

/// What placement needs of a node: allocatable CPU, memory, pods and whole GPUs, and the GPU model by label.
Result<placement::NodeSpec> node_spec(const Node& node);

}  // namespace mortise::kube
