#pragma once

#include "scheduler/kube/objects/node.h"
#include "scheduler/kube/objects/node_topology.h"
#include "scheduler/kube/objects/notes.h"
#include "scheduler/placement/node_state.h"

namespace mortise::kube {

/// What placement needs of a node of a running cluster: node_spec() with its topology and its lost GPUs (in capacity,
/// but not allocatable). A node that cannot be read takes no pods; why is noted. `report` may be null.
placement::NodeSpec live_node_spec(const Node& node, const topology::NodeTopologyReport* report,
                                   NodeTopologies& topologies, Notes& notes);

}  // namespace mortise::kube
