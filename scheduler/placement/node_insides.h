#pragma once

#include <cstddef>
#include <deque>
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
  kAssigned,   ///< it was told to take these: they are these where that is honoured, and any elsewhere
  kUnknown,    ///< any; these are one possibility
};

/// What came of something seen on a node.
enum class Observed : std::uint8_t {
  kNothingNew,  ///< it had been seen before
  kConsistent,  ///< one of the possibilities; the others are gone
  kMismatch,    ///< none of them was possible: what is seen holds, and what was foreseen on the node is forgotten
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

  /// Alignments are told apart although no node has a topology yet: some may get one while pods are on them.
  void expect_topologies() { expects_topologies_ = true; }

  /// What the pod may hold, given what is known of its devices. `state` is the node's before.
  HoldsId holds(const Machine& machine, const NodeState& state, const PodShape& pod, const DeviceSet& devices,
                Knowledge knowledge);

  /// The same for a pod that came when it was not known what state the node was in.
  HoldsId holds_found(const Machine& machine, const PodShape& pod, const DeviceSet& devices, Knowledge knowledge);

  /// What is left of what the pod may hold when it is seen with these GPUs; nothing when it was not to have them.
  /// `record` are those on record until now.
  std::optional<HoldsId> seen_with(const Machine& machine, const PodShape& pod, HoldsId before, GpuMask record,
                                   GpuMask seen);

  /// Whether something else than kubelet hands out the pod's GPUs.
  bool is_foreign(const PodShape& pod) const;

  /// One pod on a node.
  struct HeldHere {
    HoldsId holds;
    GpuMask gpus = 0;      ///< the devices on record
    bool foreign = false;  ///< its GPUs are not handed out by kubelet, which takes them for free
    bool counted = false;  ///< it is one of those in the node's count
    friend auto operator<=>(const HeldHere&, const HeldHere&) = default;
  };
  /// How many GPUs of each NUMA node some pods of a node were seen to hold together. It stays true of them when others
  /// come or some of them leave.
  struct Count {
    GpuMask gpus = 0;            ///< as by_numa_class has them
    std::vector<HeldHere> gone;  ///< those of them that have left since; in no order
    friend auto operator<=>(const Count&, const Count&) = default;
  };
  /// What the node's pods may hold together.
  BeliefId believe(TopologyId id, std::vector<HeldHere> pods, const Count& count);
  /// Whether it is certain that they cannot hold what they may hold all at once.
  bool contradictory(TopologyId id, const std::vector<HeldHere>& pods, const Count& count) const;
  /// Leaves out of what one of these pods may hold what the others and the count do not allow.
  HoldsId narrowed(TopologyId id, const std::vector<HeldHere>& pods, std::size_t at, const Count& count);

  const Belief* belief(BeliefId id) const { return id == BeliefId{} ? nullptr : &beliefs_.belief(id); }

 private:
  const Prediction& predict(TopologyId id, const NodeState& state, AlignmentId alignment);
  Hold representative(const NodeTopology& node, const NodeState& state) const;
  Holds unknown_devices(const NodeTopology& node, const PodAlignment& alignment) const;
  Holds holds_of(const HeldHere& pod) const;
  std::vector<HeldPod> pods_of(const std::vector<HeldHere>& pods, const Count& count, std::deque<Holds>& lists) const;

  std::vector<std::shared_ptr<const NodeTopology>> topologies_ = {nullptr};
  AlignmentTable alignments_;
  BeliefTable beliefs_;
  Predictor predictor_;
  std::map<std::tuple<TopologyId, std::vector<HeldHere>, Count>, BeliefId> known_beliefs_;
  bool expects_topologies_ = false;
};

/// Devices of the mask, and back: of nodes with a topology; those with more GPUs than it can have have none.
DeviceSet device_set(GpuMask gpus);
GpuMask gpu_mask(const DeviceSet& devices);
/// The devices something is on.
GpuMask held_gpus(const NodeState& state);

}  // namespace mortise::placement
