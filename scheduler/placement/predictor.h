#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/alignment.h"
#include "scheduler/placement/belief.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/node_topology.h"
#include "scheduler/topology/topology_manager.h"

namespace mortise::placement {

/// What becomes of a pod on a node.
struct Prediction {
  /// kNone: kubelet admits the pod, and it gets what it asks for, whatever kubelet and the plugin choose.
  Reason reason = Reason::kNone;
  Holds holds;  ///< what it may hold then; of no meaning otherwise
};

/// Foresees kubelet's and the device plugin's choices on the nodes of one cluster. Answers are remembered. Not
/// synchronised.
class Predictor {
 public:
  /// `belief` is null when the pods hold the GPUs of `held`, and no more.
  const Prediction& predict(TopologyId id, const NodeTopology& node, BeliefId belief_id, const Belief* belief,
                            GpuMask held, AlignmentId alignment_id, const PodAlignment& alignment);

  /// What a pod may hold in one certain state of the node; the reason of the first outcome that is a refusal.
  Prediction predict_in(TopologyId id, const NodeTopology& node, const Hold& state, bool by_numa,
                        const PodAlignment& alignment);

 private:
  using Key = std::tuple<TopologyId, BeliefId, GpuMask, AlignmentId>;
  struct Scratch {
    topology::NodeState node;   // every device its own kind
    topology::NodeState alike;  // devices of one NUMA class are of one kind
  };

  Prediction too_many(TopologyId id, const NodeTopology& node, const Hold& state, bool by_numa,
                      const PodAlignment& alignment);
  Prediction of_belief(TopologyId id, const NodeTopology& node, const Belief& belief, const PodAlignment& alignment);
  topology::NodeState& node_in(TopologyId id, const NodeTopology& node, const Hold& state, bool by_numa);

  std::map<Key, Prediction> known_;
  std::map<TopologyId, std::unique_ptr<Scratch>> scratch_;
  topology::TopologyManager manager_{kMaxStates};
};

}  // namespace mortise::placement
