#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/alignment.h"
#include "scheduler/placement/belief.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/device_set.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/node_topology.h"
#include "scheduler/placement/predictor.h"
#include "scheduler/placement/request.h"
#include "scheduler/placement/shape_table.h"
#include "scheduler/topology/device_sets.h"

namespace mortise::placement {

/// What is known of the devices that a pod holds.
enum class Knowledge : std::uint8_t {
  kExact,      ///< they are these
  kPredicted,  ///< they are what kubelet and the plugin may have chosen on a predicted node; these are one such choice
  kUnknown,    ///< any; these are one possibility
};

/// The insides of a cluster's nodes: topologies, what pods ask of them and what they may hold. Where a node's topology
/// is not known, or a pod's alignment is of no interest, every answer is the one of counting alone. Not synchronised.
class NodeInsides {
 public:
  TopologyId intern(const std::shared_ptr<const NodeTopology>& topology);
  const NodeTopology* topology(TopologyId id) const { return topologies_[id.index()].get(); }

  /// 0 while no node has a topology, unless the pod itself asks for something of it.
  AlignmentId intern(const PodRequest& pod);

  /// Why a node that has enough of everything does not take the pod; kNone: it does.
  Reason reason(const Machine& machine, const NodeState& state, const PodShape& pod);

  /// The devices for a pod of whole GPUs that the node takes: where they are predicted, what the plugin chooses; where
  /// we choose, the best by `objective`, or the first ones; without a topology the first ones.
  DeviceSet choose(const Machine& machine, const NodeState& state, const PodShape& pod,
                   std::optional<topology::Objective> objective);

  /// What the pod may hold, given what is known of its devices. `state` is the node's before.
  HoldsId holds(const Machine& machine, const NodeState& state, const PodShape& pod, const DeviceSet& devices,
                Knowledge knowledge);

  /// Whether something else than kubelet hands out the pod's GPUs.
  bool is_foreign(const PodShape& pod) const;

  /// One pod on a node.
  struct HeldHere {
    HoldsId holds;
    GpuMask gpus = 0;      ///< the devices on record
    bool foreign = false;  ///< its GPUs are not handed out by kubelet, which takes them for free
    friend auto operator<=>(const HeldHere&, const HeldHere&) = default;
  };
  /// What the node's pods may hold together.
  BeliefId believe(TopologyId id, std::vector<HeldHere> pods);

  const Belief* belief(BeliefId id) const { return id == BeliefId{} ? nullptr : &beliefs_.belief(id); }

 private:
  const Prediction& predict(TopologyId id, const NodeState& state, AlignmentId alignment);
  Hold representative(const NodeTopology& node, const NodeState& state) const;
  Holds unknown_devices(const NodeTopology& node, const PodAlignment& alignment) const;

  std::vector<std::shared_ptr<const NodeTopology>> topologies_ = {nullptr};
  AlignmentTable alignments_;
  BeliefTable beliefs_;
  Predictor predictor_;
  std::map<std::pair<TopologyId, std::vector<HeldHere>>, BeliefId> known_beliefs_;
};

/// Devices of the mask, and back: of nodes with a topology; those with more GPUs than it can have have none.
DeviceSet device_set(GpuMask gpus);
GpuMask gpu_mask(const DeviceSet& devices);
/// The devices something is on.
GpuMask held_gpus(const NodeState& state);

}  // namespace mortise::placement
