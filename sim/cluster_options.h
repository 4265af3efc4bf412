#pragma once

#include "sim/inputs.h"

namespace CLI {
class App;
}

namespace mortise::sim {

/// The options of a verb that runs traces on a cluster: --cluster, --catalogue, --topology,
/// --levels and --node-rank.
void add_cluster_options(CLI::App& app, ClusterArguments& arguments);

/// The first two of them, for verbs that only look at the nodes.
void add_node_options(CLI::App& app, ClusterArguments& arguments);

}  // namespace mortise::sim
