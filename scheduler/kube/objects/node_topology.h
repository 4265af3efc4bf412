#pragma once

#include <memory>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/kubelet_settings.h"
#include "scheduler/kube/objects/node_sources.h"
#include "scheduler/kube/objects/notes.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/node_topology.h"
#include "scheduler/topology/machine.h"

namespace mortise::kube {

/// Gives the nodes of one cluster their topology; alike nodes share one. What makes it unknown is noted.
class NodeTopologies {
 public:
  NodeTopologies(topology::LazyCatalogue& catalogue, Notes& notes) : catalogue_(catalogue), notes_(notes) {}

  /// Sets `spec.topology` from what is known of the node, or leaves it unknown. `report` may be null. An error only
  /// where the catalogue is needed and cannot be read.
  Status find(const Node& node, const topology::NodeTopologyReport* report, placement::NodeSpec& spec);

  /// The topology of a node that is this machine. `facts` and `settings` are what is known of its kubelet; `report`
  /// may be null. Null: neither kubelet nor the way between two GPUs could be foreseen from it. An error tells why the
  /// parts do not go together.
  using Made = std::shared_ptr<const placement::NodeTopology>;
  Result<Made> make(topology::Machine machine, const KubeletSettings& settings, const placement::NodeSpec& spec,
                    const topology::NodeTopologyReport* report);

 private:
  topology::LazyCatalogue& catalogue_;
  Notes& notes_;
  placement::NodeTopologyTable table_;
};

}  // namespace mortise::kube
