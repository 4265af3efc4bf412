#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/topology/device_sets.h"

namespace mortise::placement {

/// Pods of so many whole GPUs, which ask for nothing else.
inline constexpr std::array<std::int32_t, 4> kHeadroomSizes = {1, 2, 4, 8};

/// What would fit on the cluster now.
struct Headroom {
  /// For each of kHeadroomSizes on its own: how many pods could be placed one after another.
  std::array<std::int64_t, kHeadroomSizes.size()> pods{};
  std::int64_t free_nodes = 0;  ///< that take pods, and all of whose GPUs (one or more) are free

  friend bool operator==(const Headroom&, const Headroom&) = default;
};

/// Keeps it incrementally: only states that nodes entered or left are looked at again.
class HeadroomMeter {
 public:
  /// `cluster` must outlive the meter. `objective` is the policy's, see Engine::device_objective.
  HeadroomMeter(ClusterState& cluster, std::optional<topology::Objective> objective)
      : cluster_(cluster), objective_(objective) {}

  /// After everything that happened to the cluster so far.
  Headroom measure();

 private:
  Headroom of_state(StateId id) const;
  void recount(StateId id);
  void intern_shapes();

  ClusterState& cluster_;
  std::optional<topology::Objective> objective_;
  std::array<ShapeId, kHeadroomSizes.size()> shapes_{};
  std::vector<Headroom> per_slot_;
  Headroom total_;
  std::uint64_t seen_ = 0;
};

}  // namespace mortise::placement
