#pragma once

#include <optional>
#include <string>

#include "scheduler/topology/graph.h"
#include "sim/topo_best.h"

namespace mortise::sim {

/// One JSON object: what the machine says, what follows for every pair of GPUs, and the best sets if asked for.
std::string topo_json(const topology::NodeGraph& graph, const std::optional<BestAnswer>& best);

/// Tables for people: GPUs, links, bandwidths, NUMA nodes.
std::string topo_text(const topology::NodeGraph& graph);

/// A line per size: the best set, and what could be had if all GPUs were free.
std::string best_text(const topology::NodeGraph& graph, const BestAnswer& best);

/// "256 GiB", "1.5 TiB".
std::string bytes_text(Bytes bytes);

}  // namespace mortise::sim
