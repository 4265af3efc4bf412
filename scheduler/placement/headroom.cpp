#include "scheduler/placement/headroom.h"

#include "scheduler/placement/node_trial.h"
#include "scheduler/placement/request.h"

namespace mortise::placement {

/// Again each time: a pod's alignment is of no interest until there is a node whose topology is known.
void HeadroomMeter::intern_shapes() {
  std::array<ShapeId, kHeadroomSizes.size()> shapes{};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    PodRequest pod;
    pod.gpus = kHeadroomSizes[i];
    shapes[i] = cluster_.intern(pod);
  }
  if (shapes == shapes_) return;
  shapes_ = shapes;
  per_slot_.clear();
  total_ = {};
}

Headroom HeadroomMeter::of_state(StateId id) const {
  Headroom found;
  const auto members = cluster_.states().members(id);
  if (members.empty()) return found;
  const auto nodes = static_cast<std::int64_t>(members.size());
  const NodeState& state = cluster_.state(id);
  const Machine& machine = cluster_.machine(state.machine);
  if (machine.gpus == 0 || !machine.schedulable || machine.blocked) return found;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    found.pods[i] = nodes * room(cluster_, members.front(), shapes_[i], objective_);
  }
  if (state.whole_free() == machine.gpus && machine.gpus_lost == 0) found.free_nodes = nodes;
  return found;
}

void HeadroomMeter::recount(StateId id) {
  const Headroom now = of_state(id);
  Headroom& before = per_slot_[id.index()];
  for (std::size_t i = 0; i < now.pods.size(); ++i) total_.pods[i] += now.pods[i] - before.pods[i];
  total_.free_nodes += now.free_nodes - before.free_nodes;
  before = now;
}

Headroom HeadroomMeter::measure() {
  intern_shapes();
  const StateTable& states = cluster_.states();
  const bool anew = per_slot_.empty();
  per_slot_.resize(states.slot_count());
  const StateTable::Changes changes = states.changes_since(seen_);
  if (changes.complete && !anew) {
    for (const StateId id : changes.slots) recount(id);
  } else {
    for (std::uint32_t slot = 0; slot < states.slot_count(); ++slot) recount(StateId{slot});
  }
  seen_ = states.log_end();
  return total_;
}

}  // namespace mortise::placement
