#include "scheduler/kube/objects/live_node.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace mortise::kube {

using placement::NodeSpec;

namespace {

/// GPUs that the node has but does not hand out.
std::int32_t lost_gpus(const Node& node, const NodeSpec& spec) {
  Node whole = node;
  whole.allocatable = node.capacity;
  const Result<NodeSpec> capacity = node_spec(whole);
  return capacity.ok() ? std::max(0, capacity->gpus - spec.gpus) : 0;
}

}  // namespace

NodeSpec live_node_spec(const Node& node, const topology::NodeTopologyReport* report, NodeTopologies& topologies,
                        Notes& notes) {
  Result<NodeSpec> read = node_spec(node);
  if (!read.ok()) {
    // Nothing is handed out on it until it can be read again; its pods stay in the books.
    notes.add_one_of("nodes that cannot be read take no pods: " + read.message(), node.name);
    NodeSpec closed;
    closed.name = node.name;
    closed.schedulable = false;
    closed.blocked = true;
    return closed;
  }
  NodeSpec spec = *std::move(read);
  if (const Status found = topologies.find(node, report, spec); !found) {
    notes.add_one_of("nodes without topology: " + found.message(), node.name);
  }
  spec.gpus_lost = lost_gpus(node, spec);
  spec.gpus += spec.gpus_lost;
  if (spec.gpus_lost > 0) spec.topology = nullptr;
  return spec;
}

}  // namespace mortise::kube
