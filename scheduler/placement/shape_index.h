#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/policy.h"

namespace mortise::placement {

/// For one pod shape: the verdict on every live state, and the best of them at hand. Follows the cluster through the
/// state table's log, so a refresh costs only what changed since the last one.
class ShapeIndex {
 public:
  /// Larger is better; below zero: not feasible.
  using Key = std::int64_t;

  struct Best {
    Key key = -1;
    std::uint64_t rank = 0;
    NodeId node;

    friend bool operator==(const Best&, const Best&) = default;
  };

  ShapeIndex(const ClusterState& cluster, const Policy& policy, ShapeId shape);

  /// Catches up with the cluster; call before any of the queries below.
  void refresh();

  /// The best node by (key, rank, id); key < 0 when no node is feasible.
  const Best& best() const { return tree_[1]; }
  Key key(StateId id) const { return cells_[id.index()].key; }
  Reason reason(StateId id) const { return cells_[id.index()].reason; }
  /// How many nodes give each reason, indexed by Reason; kNone counts those that fit.
  const std::array<std::int64_t, kReasonCount>& nodes_by_reason() const { return nodes_by_reason_; }
  static Score score_of(Key key) { return static_cast<Score>(key >> kTieBits); }

  /// Calls f(state) for every live state whose key is the best one.
  template <class F>
  void for_each_best(F&& f) const {
    if (best().key >= 0) visit(1, f);
  }

 private:
  static constexpr int kTieBits = 21;  // holds 0..kMaxScore
  static_assert(kMaxScore < (1 << kTieBits));

  struct Cell {
    Key key = -1;
    std::uint32_t generation = 0;
    std::uint32_t seen = 0;     // the refresh that last looked at it
    std::uint32_t counted = 0;  // nodes of this state that nodes_by_reason_ holds
    Reason reason = Reason::kNone;
  };

  void rebuild();
  /// Brings one state up to date; true when its leaf changed.
  bool update(StateId id);
  void judge(Cell& cell, StateId id);
  /// Decides one match again; true when its winner changed.
  bool lift(std::size_t at);
  static bool better(const Best& a, const Best& b);

  template <class F>
  void visit(std::size_t at, F& f) const {
    if (tree_[at].key != best().key) return;
    if (at >= leaves_) {
      f(StateId{static_cast<std::uint32_t>(at - leaves_)});
    } else {
      visit(2 * at, f);
      visit(2 * at + 1, f);
    }
  }

  const ClusterState& cluster_;
  const Policy& policy_;
  const ShapeId shape_;
  std::vector<Cell> cells_;  // by state slot
  std::vector<Best> tree_;   // a heap-shaped tournament: root at 1, leaf of slot s at leaves_ + s
  std::size_t leaves_ = 0;
  std::array<std::int64_t, kReasonCount> nodes_by_reason_{};
  std::uint64_t seen_ = 0;
  std::uint32_t refreshes_ = 0;
};

}  // namespace mortise::placement
