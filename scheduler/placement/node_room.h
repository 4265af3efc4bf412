#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/placement/mixes.h"
#include "scheduler/placement/node_trial.h"
#include "scheduler/placement/policy.h"

namespace mortise::placement {

/// Kinds of members, as bits.
using KindMask = std::uint32_t;

/// What members of one kind ask for.
struct MemberKind {
  ShapeId shape;
  std::uint64_t draw = 0;  ///< uniform bits, for policies that choose at random
};

/// What of a gang fits on one node, tried device by device. Kinds are tried in their order, the largest first.
class NodeRoom {
 public:
  NodeRoom(const ClusterState& cluster, const Policy& policy, std::vector<MemberKind> kinds)
      : cluster_(cluster), policy_(policy), kinds_(std::move(kinds)) {}

  struct Room {
    Mixes mixes;        ///< the largest ones
    Mix alone;          ///< of each kind, were the others not there
    bool exact = true;  ///< false: there are mixes that none of these covers; `alone` holds all the same
  };
  /// What the node has room for of these kinds, up to `sums.cap()` of each.
  Room room(const NodeTrial& node, KindMask allowed, MixSums& sums);

  struct Place {
    std::size_t kind = 0;
    DeviceSet devices;
  };
  /// Where exactly these members go, in the order in which they are tried. Nothing: no way was found.
  std::optional<std::vector<Place>> arrange(const NodeTrial& node, const Mix& wanted);

  ShapeId shape_id(std::size_t kind) const { return kinds_[kind].shape; }
  const PodShape& shape(std::size_t kind) const { return cluster_.shapes().shape(kinds_[kind].shape); }
  /// The devices that the policy takes first for one more of a kind that fits.
  DeviceSet first_choice(const NodeTrial& node, std::size_t kind) const;
  /// Nothing was left untried so far.
  bool exact() const { return exact_; }

 private:
  struct Seen {
    std::size_t at;
    Mix mix;
    std::vector<std::int16_t> free;
    friend auto operator<=>(const Seen&, const Seen&) = default;
  };

  std::vector<DeviceSet> choices(const NodeTrial& node, std::size_t kind) const;
  bool once(std::size_t at, const Mix& mix, const NodeTrial& node);
  bool spend();
  void explore(const NodeTrial& node, std::size_t at, Mix& mix);
  Mix fill(NodeTrial node, std::size_t first) const;
  Mix fill_evenly(NodeTrial node) const;
  bool settle(const NodeTrial& node, std::size_t at, Mix& rest);

  const ClusterState& cluster_;
  const Policy& policy_;
  std::vector<MemberKind> kinds_;
  std::int64_t steps_left_ = std::int64_t{1} << 18;  // of the whole plan
  bool exact_ = true;
  // Of the node that is looked at:
  std::vector<std::size_t> order_;
  bool branches_ = false;  // which device a share takes matters to others
  int steps_ = 0;
  Mix cap_;
  Mixes found_;
  std::vector<Place> places_;
  std::set<Seen> seen_;
};

}  // namespace mortise::placement
