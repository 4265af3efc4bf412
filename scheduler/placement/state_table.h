#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/result.h"
#include "scheduler/placement/node_state.h"

namespace mortise::placement {

/// Interns node states and keeps, per state, the nodes that are in it. A state no node is in is dead; its slot is kept
/// for a while (nodes often come back to it) and then reused under a new generation.
class StateTable {
 public:
  /// Nodes are numbered in the order they are added.
  void add_node(std::uint64_t rank, const NodeState& state);
  void move_node(NodeId node, const NodeState& state);
  /// The node is in no state until `return_node`.
  void remove_node(NodeId node);
  void return_node(NodeId node, std::uint64_t rank, const NodeState& state);

  const NodeState& state(StateId id) const { return slots_[id.index()].state; }
  StateId state_of(NodeId node) const { return nodes_[node.index()].state; }
  std::uint64_t rank(NodeId node) const { return nodes_[node.index()].rank; }

  std::size_t slot_count() const { return slots_.size(); }
  /// Changes when the slot is given to another state: whatever was remembered about it is then void.
  std::uint32_t generation(StateId id) const { return slots_[id.index()].generation; }
  bool live(StateId id) const { return !slots_[id.index()].members.empty(); }
  /// The nodes in the state; the first is the lowest by (rank, id), the others are in no order.
  std::span<const NodeId> members(StateId id) const { return slots_[id.index()].members; }

  /// Every slot whose members changed is noted once per change. A reader remembers `log_end()` and later asks for what
  /// came after; `complete` is false when part of that is forgotten and all slots must be read.
  struct Changes {
    bool complete = false;
    std::span<const StateId> slots;
  };
  std::uint64_t log_end() const { return log_begin_ + log_.size(); }
  Changes changes_since(std::uint64_t seen) const;

  /// The same for nodes: every node that came, left, or went from one state to another is noted once per change.
  struct Moves {
    bool complete = false;
    std::span<const NodeId> nodes;
  };
  std::uint64_t moves_end() const { return moves_begin_ + moves_.size(); }
  Moves moves_since(std::uint64_t seen) const;

  /// Walks the whole structure; the error names the first thing out of place.
  Status check() const;

 private:
  struct Slot {
    NodeState state;
    std::uint64_t hash = 0;
    std::uint32_t generation = 0;
    std::uint64_t died = 0;       // serial number of its last death
    std::vector<NodeId> members;  // binary heap by (rank, id)
  };
  struct NodeEntry {
    std::uint64_t rank = 0;
    StateId state;
    std::uint32_t heap_position = 0;
    bool present = true;
  };

  StateId intern(const NodeState& state);
  StateId take_slot();
  void enter(NodeId node, StateId id);
  void leave(NodeId node);
  void note(StateId id);
  void note_move(NodeId node);

  bool before(NodeId a, NodeId b) const;
  void set_member(Slot& slot, std::size_t position, NodeId node);
  void sift_up(Slot& slot, std::size_t position);
  void sift_down(Slot& slot, std::size_t position);

  void index_insert(StateId id);
  void index_erase(StateId id);
  void index_grow();

  std::vector<Slot> slots_;
  std::vector<NodeEntry> nodes_;
  std::size_t live_slots_ = 0;
  std::uint64_t deaths_ = 0;
  std::deque<std::pair<StateId, std::uint64_t>> dead_;  // oldest first; stale entries are skipped

  // Open addressing over slots; entries are slot + 1, 0 is free.
  std::vector<std::uint32_t> index_;
  std::size_t indexed_ = 0;

  std::vector<StateId> log_;
  std::uint64_t log_begin_ = 0;
  std::vector<NodeId> moves_;
  std::uint64_t moves_begin_ = 0;
};

}  // namespace mortise::placement
