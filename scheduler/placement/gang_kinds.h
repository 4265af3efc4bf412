#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/placement/gang.h"
#include "scheduler/placement/node_room.h"

namespace mortise::placement {

/// Roles that ask for the same and may go to the same nodes.
struct GangKind {
  MemberKind member;
  const GangRole* like = nullptr;    ///< one of them
  std::vector<std::uint32_t> roles;  ///< in the order of the request
  std::int32_t count = 0;
  std::int32_t min = 0;
  std::int64_t weight = 1;  ///< milli-GPU; without GPUs next to nothing
};

/// To how many nodes it may go; the largest number there is: to any.
std::size_t choice(const GangKind& kind);

/// The roles as kinds: those that ask for the most GPUs first, then those that may go to the fewest nodes.
std::vector<GangKind> gang_kinds(const GangRequest& request, ClusterState& cluster, std::uint64_t seed);

using NodeList = std::optional<std::span<const NodeId>>;
/// Which kinds may go to a node, by NodeId; empty: all of them, everywhere. `list` is one of a role's two.
std::vector<KindMask> kind_masks(std::span<const GangKind> kinds, NodeList GangRole::*list, std::size_t nodes);

}  // namespace mortise::placement
