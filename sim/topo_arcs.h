#pragma once

#include <map>
#include <vector>

#include "scheduler/topology/graph.h"
#include "sim/topo_layout.h"

namespace mortise::sim {

/// The NVLinks of a pair of GPUs without a switch, drawn as an arc below the machine.
struct Arc {
  int a = 0;  ///< position of the left GPU
  int b = 0;
  int nvlinks = 0;
  double from = 0;  ///< where it leaves the GPUs
  double to = 0;
  int depth = 0;  ///< how far it reaches below the machine
};

/// Widest first. At each GPU arcs leave side by side, in the order that lets them run inside each other. Arcs cross
/// only where their ends alternate, and then not along each other.
std::vector<Arc> lay_out_arcs(const topology::NodeGraph& graph, const std::map<int, const Box*>& gpu_boxes);

}  // namespace mortise::sim
