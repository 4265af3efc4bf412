#pragma once

#include <optional>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/kubelet_settings.h"
#include "scheduler/kube/objects/node.h"
#include "scheduler/topology/sources/lazy_catalogue.h"
#include "scheduler/topology/sources/nrt_json.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::kube {

/// What is known of the inside of a node.
struct NodeReading {
  /// The machine, from the annotation mortise.dev/topology, then NodeResourceTopology, then labels with the catalogue.
  /// Its kubelet facts: from NodeResourceTopology, then mortise.dev/kubelet, then the others.
  topology::Reading reading;
  KubeletSettings kubelet;  ///< of mortise.dev/kubelet
  bool told = false;        ///< some source says something
};

/// Combines the sources of one node; either may be null. What cannot be read is left out with a note. An error only
/// where the catalogue is needed and cannot be read.
Result<NodeReading> read_node_sources(const Node* node, const topology::NodeTopologyReport* report,
                                      topology::LazyCatalogue& catalogue);

/// Leaves out which CPUs, or how much memory, the NUMA nodes have: those of a machine of the same kind may differ.
void forget_cpus(topology::Machine& machine);
void forget_memory(topology::Machine& machine);

}  // namespace mortise::kube
