#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/set_quality.h"

namespace mortise::placement {

/// How well a pod's GPUs are joined.
struct PlacementQuality {
  std::int64_t bandwidth_permille = 0;  ///< of the slowest pair, over that of the machine's best set of the size
  std::int64_t ring_permille = 0;       ///< the same of the slowest link of the best ring
  int numa_nodes = 0;                   ///< the fewest that are near all of the GPUs; 0: not known
};

/// Judges placements of two and more whole GPUs; keeps what it worked out about each machine.
class QualityMeter {
 public:
  /// Nothing for fewer GPUs, shares, nodes whose topology is not known or that have more than 16 GPUs.
  std::optional<PlacementQuality> judge(const ClusterState& cluster, NodeId node, const DeviceSet& devices);

 private:
  struct Machine {
    SetQuality bandwidth;
    SetQuality ring;
  };
  std::map<const topology::DeviceSets*, std::unique_ptr<Machine>> machines_;  // never read in order
};

}  // namespace mortise::placement
