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
  touched_.clear();
  for (const StateId id : changes.slots) {
    if (id.index() >= cells_.size()) cells_.resize(states.slot_count());
    Cell& cell = cells_[id.index()];
    if (cell.seen == refreshes_) continue;
    cell.seen = refreshes_;
    update(id);
    touched_.push_back(id);
  }
  // Many changes share most of their paths to the root: then one pass over the tree is cheaper.
  if (touched_.size() * 4 > leaves_) {
    for (std::size_t at = leaves_ - 1; at > 0; --at) lift(at);
    return;
  }
  for (const StateId id : touched_) {
    for (std::size_t at = (leaves_ + id.index()) / 2; at > 0; at /= 2) lift(at);
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

void ShapeIndex::update(StateId id) {
  const StateTable& states = cluster_.states();
  const std::span<const NodeId> members = states.members(id);
  Cell& cell = cells_[id.index()];
  nodes_by_reason_[static_cast<std::size_t>(cell.reason)] -= cell.counted;
  cell.counted = static_cast<std::uint32_t>(members.size());
  Best& leaf = tree_[leaves_ + id.index()];
  leaf = Best{};
  if (members.empty()) return;
  if (cell.generation != states.generation(id)) judge(cell, id);
  nodes_by_reason_[static_cast<std::size_t>(cell.reason)] += cell.counted;
  if (cell.key >= 0) leaf = Best{cell.key, states.rank(members.front()), members.front()};
}

void ShapeIndex::judge(Cell& cell, StateId id) {
  cell.generation = cluster_.states().generation(id);
  const NodeState& state = cluster_.state(id);
  const Candidate candidate{state, cluster_.machine(state.machine)};
  const PodShape& pod = cluster_.shapes().shape(shape_);
  cell.reason = feasibility(state, candidate.machine, pod);
  cell.key = -1;
  if (cell.reason != Reason::kNone) return;
  cell.key = (Key{policy_.score(candidate, pod)} << kTieBits) | policy_.tie_score(candidate, pod);
}

void ShapeIndex::lift(std::size_t at) {
  const Best& left = tree_[2 * at];
  const Best& right = tree_[2 * at + 1];
  tree_[at] = better(right, left) ? right : left;
}

}  // namespace mortise::placement
