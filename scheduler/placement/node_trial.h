#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/placement/cluster_state.h"

namespace mortise::placement {

/// What would become of one node if it took more pods. A copy of that node alone, so trying costs little and leaves
/// nothing behind. The same for all nodes in one state.
class NodeTrial {
 public:
  NodeTrial(const ClusterState& cluster, NodeId node);
  /// A node like these that holds nothing.
  static NodeTrial empty(const ClusterState& cluster, MachineId machine);

  const NodeState& state() const { return state_; }
  const Machine& machine() const { return cluster_->machine(state_.machine); }
  bool fits(const PodShape& pod) const;
  /// Books a pod that fits, with devices that are free.
  void take(ShapeId pod, const DeviceSet& devices);

 private:
  explicit NodeTrial(const ClusterState& cluster) : cluster_(&cluster) {}

  const ClusterState* cluster_;
  NodeState state_;
  std::vector<NodeInsides::HeldHere> held_;  // where the node's topology is known
  NodeInsides::Count count_;
};

/// How many more pods of this shape the node takes one after another, as far as can be foreseen. `objective` is for
/// ClusterState::choose_devices. The same for all nodes in one state.
std::int64_t room(const ClusterState& cluster, NodeId node, ShapeId pod, std::optional<topology::Objective> objective);

}  // namespace mortise::placement
