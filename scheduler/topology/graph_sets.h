#pragma once

#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/device_sets.h"
#include "scheduler/topology/graph.h"

namespace mortise::topology {

/// How many classes each GPU's nearest NIC is away: 0 for PIX up to 4 for SYS, and 4 where no class is known. Empty for
/// a machine without NICs.
std::vector<int> nic_distances(const NodeGraph& graph);

/// The best sets of GPUs of the machine, which may have at most kMaxSetGpus.
Result<DeviceSets> device_sets_of(const NodeGraph& graph);

}  // namespace mortise::topology
