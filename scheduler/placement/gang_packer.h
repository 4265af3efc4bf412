#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/placement/gang_kinds.h"
#include "scheduler/placement/gang_rooms.h"

namespace mortise::placement {

/// Puts members on nodes one after the other and takes nothing back: first fit decreasing, as for bins. Finds what is
/// obvious where a search over mixes has to leave some out.
class GangPacker {
 public:
  struct Seat {
    NodeId node;
    std::size_t kind = 0;
    DeviceSet devices;
  };
  struct Packed {
    Mix members;
    std::vector<Seat> seats;  ///< in the order in which the nodes take them
  };
  using Accept = std::function<bool(const Mix&)>;

  GangPacker(const ClusterState& cluster, const GangRooms& rooms, const NodeRoom& node_room,
             std::span<const GangKind> kinds);

  /// Most of `wanted` on these nodes that `accept` accepts. The kinds are tried largest first, scarcest first and by
  /// CPU; the nodes as they come, by rank and tightest first.
  std::optional<Packed> pack(std::vector<NodeId> nodes, const Mix& wanted, const Accept& accept) const;

 private:
  using Order = std::vector<std::size_t>;

  Packed first_fit(std::span<const NodeId> nodes, const Order& kinds, const Mix& wanted) const;

  const ClusterState& cluster_;
  const GangRooms& rooms_;
  const NodeRoom& node_room_;
  std::vector<Order> kind_orders_;
};

}  // namespace mortise::placement
