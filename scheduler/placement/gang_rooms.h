#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/placement/domains.h"
#include "scheduler/placement/node_room.h"

namespace mortise::placement {

/// What of a gang fits in every domain. Nodes in the same state are looked at once, and those with the same room are
/// treated together from then on.
class GangRooms {
 public:
  enum class View {
    kNow,
    kEmpty,  ///< as if the nodes held nothing
  };

  /// `allowed` says by NodeId which kinds may go there; empty: all of them, everywhere. `weights` say what a member of
  /// each kind counts for.
  GangRooms(const ClusterState& cluster, const Domains& domains, NodeRoom& node_room, std::vector<KindMask> allowed,
            std::vector<std::int64_t> weights, const Mix& cap, View view);

  /// Looks at the nodes of a domain and all below it. Where nobody looked is no room.
  void measure(DomainId top);
  bool measured(DomainId domain) const { return tallies_[domain.index()].measured; }

  /// Worked out when it is first asked for.
  const Mixes& of(DomainId domain);
  const Mixes& of(NodeId node) const { return rooms_[entry_of_[node.index()]].mixes; }
  /// Of each kind alone, were the others not there.
  Mix alone(DomainId domain) const;
  Mix alone(NodeId node) const { return rooms_[entry_of_[node.index()]].alone; }
  /// False: by sums alone it has no room for this. True says nothing.
  bool may_hold(DomainId domain, const Mix& members) const;
  /// Whether some node that was looked at holds this; the most that one of them has of each kind.
  bool a_node_holds(const Mix& members) const;
  Mix most_on_a_node() const;

  NodeTrial trial(NodeId node) const;
  /// The node turned out to have no room. The domains it is in have to be measured again.
  void give_up(NodeId node);
  /// Nothing was left out so far.
  bool exact() const { return sums_.exact(); }

 private:
  /// The room of one node.
  struct Room {
    Mixes mixes;
    Mix alone;
    std::int64_t weight = 0;  // no mix that fits counts for more

    friend auto operator<=>(const Room&, const Room&) = default;
  };
  /// How many nodes of a domain have which room.
  struct Tally {
    bool measured = false;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> nodes{};  // room and number; ascending
    Mixes mixes{};                                                 // empty: not worked out yet
  };

  std::int64_t weight(const Mix& mix) const;
  std::int64_t most_weight(const NodeTrial& node, const NodeRoom::Room& room) const;
  std::uint32_t look_at(NodeId node);
  std::uint32_t intern(Room room);
  void add(std::uint32_t room, std::uint32_t nodes);
  const Mixes& of_alike(std::uint32_t room, std::uint32_t nodes);

  const ClusterState& cluster_;
  const Domains& domains_;
  NodeRoom& node_room_;
  std::vector<KindMask> allowed_;
  std::vector<std::int64_t> weights_;
  MixSums sums_;
  View view_;
  std::vector<Room> rooms_;  // 0: none
  std::map<Room, std::uint32_t> room_ids_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Mixes> of_alike_;  // by room and number of nodes
  std::unordered_map<std::uint64_t, std::uint32_t> known_;             // by state or machine, and kinds; never walked
  std::vector<std::uint32_t> entry_of_;                                // by NodeId
  std::vector<Tally> tallies_;                                         // by DomainId
  // Of the domain that is measured:
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> counted_;
};

}  // namespace mortise::placement
