#pragma once

#include <string>

#include "scheduler/topology/graph.h"

namespace mortise::sim {

/// The machine as a picture: sockets, NUMA nodes, bridges and switches as nested boxes, GPUs and NICs in them, and
/// NVLinks below, coloured and thick by their number.
std::string topo_svg(const topology::NodeGraph& graph);

}  // namespace mortise::sim
