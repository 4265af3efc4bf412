#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace mortise {

/// A small integer that names one thing of one kind; ids of different kinds do not mix.
template <class Tag>
struct Id {
  std::uint32_t value = 0;

  friend auto operator<=>(const Id&, const Id&) = default;
  std::size_t index() const { return value; }
};

using NodeId = Id<struct NodeTag>;              ///< one node of a ClusterState, dense from 0
using StateId = Id<struct StateTag>;            ///< an interned node state (slots are reused once dead)
using ShapeId = Id<struct ShapeTag>;            ///< an interned pod shape
using MachineId = Id<struct MachineTag>;        ///< the part of a node that never changes
using ModelId = Id<struct ModelTag>;            ///< an interned GPU model name
using TopologyId = Id<struct TopologyTag>;      ///< the inside of a node; 0: not known
using AlignmentId = Id<struct AlignmentTag>;    ///< what a pod asks of kubelet's managers; 0: nothing
using HoldsId = Id<struct HoldsTag>;            ///< what one pod may hold of a node's inside; 0: its devices, no more
using BeliefId = Id<struct BeliefTag>;          ///< what all pods of a node may hold; 0: their devices, no more
using AllocationId = Id<struct AllocationTag>;  ///< one pod's hold on one node

}  // namespace mortise

template <class Tag>
struct std::hash<mortise::Id<Tag>> {
  std::size_t operator()(mortise::Id<Tag> id) const noexcept { return id.value; }
};
