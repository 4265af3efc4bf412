#include "scheduler/placement/node_trial.h"

#include <algorithm>

#include "scheduler/placement/feasibility.h"

namespace mortise::placement {

NodeTrial::NodeTrial(const ClusterState& cluster, NodeId node) : NodeTrial(cluster) {
  state_ = cluster.state_of(node);
  const ClusterState::NodeEntry& entry = cluster.nodes_[node.index()];
  held_ = cluster.held_on(entry);
  count_ = entry.count;
}

NodeTrial NodeTrial::empty(const ClusterState& cluster, MachineId machine) {
  NodeTrial trial(cluster);
  trial.state_ = cluster.empty_state(machine);
  return trial;
}

bool NodeTrial::fits(const PodShape& pod) const {
  return feasibility(state_, machine(), pod) == Reason::kNone &&
         cluster_->topology_reason(state_, pod) == Reason::kNone;
}

void NodeTrial::take(ShapeId pod, const DeviceSet& devices) {
  const PodShape& shape = cluster_->shapes().shape(pod);
  const Machine& on = machine();
  Allocation allocation{NodeId{}, pod, devices};
  const bool looks_inside = on.topology != TopologyId{};
  if (looks_inside) allocation.holds = cluster_->insides_.holds(on, state_, shape, devices, Knowledge::kPredicted);
  ClusterState::charge(shape, devices, -1, state_);
  state_.kinds |= gpu_pod_kind(shape.gpus, shape.gpu_milli);
  if (!looks_inside) return;
  held_.push_back(cluster_->held_here(allocation));
  state_.belief = cluster_->insides_.believe(on.topology, held_, count_);
}

std::int64_t room(const ClusterState& cluster, NodeId node, ShapeId pod, std::optional<topology::Objective> objective) {
  const PodShape& shape = cluster.shapes().shape(pod);
  NodeTrial trial(cluster, node);
  std::int64_t pods = 0;
  for (; trial.fits(shape); ++pods) {
    DeviceSet devices;
    if (shape.is_share()) {
      // Whichever has enough left: that does not change how many fit.
      const auto free = trial.state().free_devices();
      const auto found = std::find_if(free.begin(), free.end(), [&](int left) { return left >= shape.gpu_milli; });
      devices.insert(static_cast<int>(found - free.begin()));
    } else {
      devices = cluster.choose_devices(trial.state(), shape, objective);
    }
    trial.take(pod, devices);
  }
  return pods;
}

}  // namespace mortise::placement
