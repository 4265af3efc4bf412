#include "scheduler/placement/shape_index.h"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>

#include "scheduler/placement/feasibility.h"

namespace mortise::placement {

ShapeIndex::ShapeIndex(const ClusterState& cluster, const Policy& policy, ShapeId shape)
    : cluster_(cluster), policy_(policy), shape_(shape) {
  rebuild();
}

bool ShapeIndex::better(const Best& a, const Best& b) {
  if (a.key != b.key) return a.key > b.key;
  return std::tie(a.rank, a.node) < std::tie(b.rank, b.node);
}

void ShapeIndex::refresh() {
  const StateTable& states = cluster_.states();
  const StateTable::Changes changes = states.changes_since(seen_);
  if (!changes.complete || states.slot_count() > leaves_) {
    rebuild();
    return;
  }
  seen_ = states.log_end();
  ++refreshes_;
  for (const StateId id : changes.slots) {
    if (id.index() >= cells_.size()) cells_.resize(states.slot_count());
    Cell& cell = cells_[id.index()];
    if (cell.seen == refreshes_) continue;
    cell.seen = refreshes_;
    // Most changed states were and are not feasible for this shape: nothing to carry up the tree then.
    if (!update(id)) continue;
    for (std::size_t at = (leaves_ + id.index()) / 2; at > 0 && lift(at); at /= 2) {
    }
  }
}

void ShapeIndex::rebuild() {
  const StateTable& states = cluster_.states();
  cells_.resize(states.slot_count());
  leaves_ = std::bit_ceil(std::max<std::size_t>(states.slot_count(), 2));
  tree_.assign(2 * leaves_, Best{});
  for (std::uint32_t s = 0; s < states.slot_count(); ++s) {
    update(StateId{s});
  }
  for (std::size_t at = leaves_ - 1; at > 0; --at) lift(at);
  seen_ = states.log_end();
}

bool ShapeIndex::update(StateId id) {
  const StateTable& states = cluster_.states();
  const std::span<const NodeId> members = states.members(id);
  Cell& cell = cells_[id.index()];
  nodes_by_reason_[static_cast<std::size_t>(cell.reason)] -= cell.counted;
  cell.counted = static_cast<std::uint32_t>(members.size());
  Best now;
  if (!members.empty()) {
    if (cell.generation != states.generation(id)) judge(cell, id);
    nodes_by_reason_[static_cast<std::size_t>(cell.reason)] += cell.counted;
    if (cell.key >= 0) now = Best{cell.key, states.rank(members.front()), members.front()};
  }
  Best& leaf = tree_[leaves_ + id.index()];
  if (leaf == now) return false;
  leaf = now;
  return true;
}

void ShapeIndex::judge(Cell& cell, StateId id) {
  cell.generation = cluster_.states().generation(id);
  const NodeState& state = cluster_.state(id);
  const Machine& machine = cluster_.machine(state.machine);
  const Candidate candidate{state, machine, cluster_.topology_of(machine)};
  const PodShape& pod = cluster_.shapes().shape(shape_);
  cell.reason = feasibility(state, machine, pod);
  if (cell.reason == Reason::kNone) cell.reason = cluster_.topology_reason(state, pod);
  cell.key = -1;
  if (cell.reason != Reason::kNone) return;
  cell.key = (Key{policy_.score(candidate, pod)} << kTieBits) | policy_.tie_score(candidate, pod);
}

bool ShapeIndex::lift(std::size_t at) {
  const Best& left = tree_[2 * at];
  const Best& right = tree_[2 * at + 1];
  const Best& winner = better(right, left) ? right : left;
  if (tree_[at] == winner) return false;
  tree_[at] = winner;
  return true;
}

}  // namespace mortise::placement
