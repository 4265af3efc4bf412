#include "sim/cluster_options.h"

#include <CLI/CLI.hpp>

namespace mortise::sim {

void add_node_options(CLI::App& app, ClusterArguments& arguments) {
  app.add_option("--cluster", arguments.cluster,
                 "The nodes: openb node CSV, Kubernetes List (JSON, YAML), file of node pools, or machines of the "
                 "catalogue as MACHINE:COUNT,...")
      ->type_name("CLUSTER");
  app.add_option("--catalogue", arguments.catalogue, "Folder of the machine catalogue")->type_name("DIR");
}

void add_cluster_options(CLI::App& app, ClusterArguments& arguments) {
  add_node_options(app, arguments);
  app.get_option("--cluster")->required();
  app.add_option("--topology", arguments.topology,
                 "Of the nodes of a CSV: none (default), or catalogue: the machine with their GPU model and number")
      ->type_name("SOURCE");
  app.add_option("--levels", arguments.levels,
                 "Topology levels above the nodes, coarse to fine, for gangs; default: as the nodes' labels tell")
      ->type_name("NAME=LABEL,...");
  app.add_option("--node-rank", arguments.node_rank, "File with the tie order: one 'node rank' a line")
      ->type_name("FILE");
}

}  // namespace mortise::sim
