#include "scheduler/placement/state_table.h"

#include <algorithm>
#include <utility>

namespace mortise::placement {

namespace {
// Dead states are kept up to this many slots, or twice the live ones, before their slots are reused.
constexpr std::size_t kKeptSlots = 4096;
constexpr std::size_t kLogLimit = 1 << 17;
}  // namespace

void StateTable::add_node(std::uint64_t rank, const NodeState& state) {
  const NodeId node{static_cast<std::uint32_t>(nodes_.size())};
  nodes_.push_back({rank, StateId{}, 0, true});
  enter(node, intern(state));
}

void StateTable::remove_node(NodeId node) {
  leave(node);
  nodes_[node.index()].present = false;
  note_move(node);
}

void StateTable::return_node(NodeId node, std::uint64_t rank, const NodeState& state) {
  nodes_[node.index()].rank = rank;
  nodes_[node.index()].present = true;
  enter(node, intern(state));
}

void StateTable::move_node(NodeId node, const NodeState& state) {
  // Interning first keeps the old slot alive, so it cannot be the one that is reused.
  const StateId to = intern(state);
  if (to == state_of(node)) return;
  leave(node);
  enter(node, to);
}

StateTable::Changes StateTable::changes_since(std::uint64_t seen) const {
  if (seen < log_begin_) return {false, {}};
  return {true, std::span(log_).subspan(static_cast<std::size_t>(seen - log_begin_))};
}

StateTable::Moves StateTable::moves_since(std::uint64_t seen) const {
  if (seen < moves_begin_) return {false, {}};
  return {true, std::span(moves_).subspan(static_cast<std::size_t>(seen - moves_begin_))};
}

void StateTable::note_move(NodeId node) {
  if (moves_.size() == kLogLimit) {
    moves_.erase(moves_.begin(), moves_.begin() + kLogLimit / 2);
    moves_begin_ += kLogLimit / 2;
  }
  moves_.push_back(node);
}

void StateTable::note(StateId id) {
  if (log_.size() == kLogLimit) {
    log_.erase(log_.begin(), log_.begin() + kLogLimit / 2);
    log_begin_ += kLogLimit / 2;
  }
  log_.push_back(id);
}

StateId StateTable::intern(const NodeState& state) {
  const std::uint64_t hash = state.hash();
  if (!index_.empty()) {
    const std::size_t mask = index_.size() - 1;
    for (std::size_t i = hash & mask; index_[i] != 0; i = (i + 1) & mask) {
      const Slot& slot = slots_[index_[i] - 1];
      if (slot.hash == hash && slot.state == state) return StateId{index_[i] - 1};
    }
  }
  const StateId id = take_slot();
  Slot& slot = slots_[id.index()];
  slot.state = state;
  slot.hash = hash;
  ++slot.generation;
  index_insert(id);
  return id;
}

StateId StateTable::take_slot() {
  if (slots_.size() >= std::max(kKeptSlots, 2 * live_slots_)) {
    while (!dead_.empty()) {
      const auto [id, died] = dead_.front();
      dead_.pop_front();
      const Slot& slot = slots_[id.index()];
      if (slot.members.empty() && slot.died == died) {
        index_erase(id);
        return id;
      }
    }
  }
  slots_.emplace_back();
  return StateId{static_cast<std::uint32_t>(slots_.size() - 1)};
}

void StateTable::enter(NodeId node, StateId id) {
  Slot& slot = slots_[id.index()];
  if (slot.members.empty()) ++live_slots_;
  slot.members.push_back(node);
  nodes_[node.index()].state = id;
  sift_up(slot, slot.members.size() - 1);
  note(id);
  note_move(node);
}

void StateTable::leave(NodeId node) {
  const StateId id = state_of(node);
  Slot& slot = slots_[id.index()];
  const std::size_t hole = nodes_[node.index()].heap_position;
  const NodeId last = slot.members.back();
  slot.members.pop_back();
  if (hole < slot.members.size()) {
    set_member(slot, hole, last);
    sift_down(slot, hole);
    sift_up(slot, nodes_[last.index()].heap_position);
  }
  if (slot.members.empty()) {
    --live_slots_;
    slot.died = ++deaths_;
    dead_.emplace_back(id, slot.died);
  }
  note(id);
}

bool StateTable::before(NodeId a, NodeId b) const {
  return std::pair(rank(a), a.value) < std::pair(rank(b), b.value);
}

void StateTable::set_member(Slot& slot, std::size_t position, NodeId node) {
  slot.members[position] = node;
  nodes_[node.index()].heap_position = static_cast<std::uint32_t>(position);
}

void StateTable::sift_up(Slot& slot, std::size_t position) {
  const NodeId node = slot.members[position];
  while (position > 0) {
    const std::size_t parent = (position - 1) / 2;
    if (!before(node, slot.members[parent])) break;
    set_member(slot, position, slot.members[parent]);
    position = parent;
  }
  set_member(slot, position, node);
}

void StateTable::sift_down(Slot& slot, std::size_t position) {
  const NodeId node = slot.members[position];
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= slot.members.size()) break;
    if (child + 1 < slot.members.size() && before(slot.members[child + 1], slot.members[child])) ++child;
    if (!before(slot.members[child], node)) break;
    set_member(slot, position, slot.members[child]);
    position = child;
  }
  set_member(slot, position, node);
}

void StateTable::index_insert(StateId id) {
  if (2 * (indexed_ + 1) > index_.size()) index_grow();
  const std::size_t mask = index_.size() - 1;
  std::size_t i = slots_[id.index()].hash & mask;
  while (index_[i] != 0) i = (i + 1) & mask;
  index_[i] = id.value + 1;
  ++indexed_;
}

void StateTable::index_erase(StateId id) {
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = slots_[id.index()].hash & mask;
  while (index_[hole] != id.value + 1) hole = (hole + 1) & mask;
  --indexed_;
  // Entries after the hole that probed past it are moved back, so no tombstones are needed.
  for (std::size_t i = (hole + 1) & mask; index_[i] != 0; i = (i + 1) & mask) {
    const std::size_t home = slots_[index_[i] - 1].hash & mask;
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      index_[hole] = index_[i];
      hole = i;
    }
  }
  index_[hole] = 0;
}

void StateTable::index_grow() {
  std::vector<std::uint32_t> old(std::max<std::size_t>(64, 2 * index_.size()), 0);
  old.swap(index_);
  const std::size_t mask = index_.size() - 1;
  for (const std::uint32_t entry : old) {
    if (entry == 0) continue;
    std::size_t i = slots_[entry - 1].hash & mask;
    while (index_[i] != 0) i = (i + 1) & mask;
    index_[i] = entry;
  }
}

Status StateTable::check() const {
  std::size_t members = 0;
  std::size_t live_slots = 0;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = slots_[s];
    members += slot.members.size();
    if (!slot.members.empty()) ++live_slots;
    if (slot.hash != slot.state.hash()) return Error{"a state's hash is not its content's"};
    for (std::size_t i = 0; i < slot.members.size(); ++i) {
      const NodeEntry& node = nodes_[slot.members[i].index()];
      if (node.state.index() != s || node.heap_position != i) return Error{"a node is listed where it is not"};
      if (i > 0 && before(slot.members[i], slot.members[(i - 1) / 2])) return Error{"a state's heap is out of order"};
    }
  }
  const auto present = std::count_if(nodes_.begin(), nodes_.end(), [](const NodeEntry& node) { return node.present; });
  if (members != static_cast<std::size_t>(present)) return Error{"not every node is listed once"};
  if (live_slots != live_slots_) return Error{"the number of live states is wrong"};
  return ok_status();
}

}  // namespace mortise::placement
