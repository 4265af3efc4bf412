#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/node_topology.h"
#include "scheduler/topology/index_set.h"
#include "scheduler/topology/node_state.h"

// Kubelet and the device plugin choose a pod's GPUs, and kubelet which CPUs and whose memory; what they chose is often
// not seen. So placement keeps what they *may* have chosen: for each pod a list, for each node the states that the
// pods' lists allow. The lists of a node's pods are taken as independent of each other, which can only add states.

namespace mortise::placement {

/// What one pod may hold, or all pods of a node together.
struct Hold {
  GpuMask gpus = 0;
  topology::IndexSet cpus;                    ///< dedicated
  std::vector<topology::MemoryBlock> memory;  ///< pinned; sorted
  friend auto operator<=>(const Hold&, const Hold&) = default;
};

/// The choices for one pod.
struct Holds {
  std::vector<Hold> options;  ///< sorted, each once
  /// Known only as so many GPUs of each NUMA class; the first ones of the class stand for them.
  bool by_numa = false;
  /// False: there are too many choices to list; `options` is empty.
  bool complete = true;
  friend auto operator<=>(const Holds&, const Holds&) = default;
};

/// The states a node may be in.
struct Belief {
  std::vector<Hold> states;  ///< sorted, each once; what is held
  bool by_numa = false;      ///< as in Holds
  bool complete = true;      ///< as in Holds
  friend auto operator<=>(const Belief&, const Belief&) = default;
};

/// More states than this are summed up by NUMA class, then given up.
inline constexpr std::size_t kMaxStates = 128;

/// The mask with the GPUs of each NUMA class replaced by as many of its first ones.
GpuMask by_numa_class(const NodeTopology& node, GpuMask gpus);
Holds by_numa_class(const NodeTopology& node, const Holds& holds);

/// One pod in a belief: its choices, and for a share of a GPU that others may be on the same GPU.
struct HeldPod {
  const Holds* holds;
  bool share = false;
  bool counted = false;  ///< among the pods of the count
  bool gone = false;     ///< has left since it was counted: it holds nothing, but the count is with it
};

/// All states that the choices of the pods allow. Independent of the order of the pods. `count`: what the counted pods
/// held together when they were seen, as by_numa_class has it; of no meaning when no pod is counted.
Belief combine(const NodeTopology& node, std::span<const HeldPod> pods, GpuMask count = 0);

/// Whether it is certain that the choices of the pods allow no state.
bool contradictory(const NodeTopology& node, std::span<const HeldPod> pods, GpuMask count);

/// Interns. Id 0 of each kind is given by the caller's rule: nothing but the devices that are on record.
class BeliefTable {
 public:
  BeliefTable();
  HoldsId intern(const Holds& holds);
  BeliefId intern(const Belief& belief);
  const Holds& holds(HoldsId id) const { return *holds_[id.index()]; }
  const Belief& belief(BeliefId id) const { return *beliefs_[id.index()]; }

 private:
  std::map<Holds, HoldsId> holds_ids_;
  std::map<Belief, BeliefId> belief_ids_;
  std::vector<const Holds*> holds_;
  std::vector<const Belief*> beliefs_;
};

}  // namespace mortise::placement
