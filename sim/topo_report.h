#pragma once

#include <string>

#include "scheduler/topology/graph.h"

namespace mortise::sim {

/// One JSON object: what the machine says, and what follows for every pair of GPUs.
std::string topo_json(const topology::NodeGraph& graph);

/// Tables for people: GPUs, links, bandwidths, NUMA nodes.
std::string topo_text(const topology::NodeGraph& graph);

/// "256 GiB", "1.5 TiB".
std::string bytes_text(Bytes bytes);

}  // namespace mortise::sim
