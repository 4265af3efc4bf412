#pragma once

#include "scheduler/base/result.h"
#include "scheduler/topology/device_sets.h"
#include "scheduler/topology/graph.h"

namespace mortise::topology {

/// How far each GPU is from its nearest NIC: the rank of the link class, nearest first. Empty where no GPU's is known.
std::vector<int> nic_distances(const NodeGraph& graph);

/// The device sets of a machine: its bandwidths, the plugin's scores, NICs as the tie-breaker.
Result<DeviceSets> device_sets_of(const NodeGraph& graph);

}  // namespace mortise::topology
