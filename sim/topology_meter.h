#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/placement/placement_quality.h"
#include "sim/replay.h"

namespace mortise::sim {

/// Adds up how well the GPUs of placed pods are joined.
class TopologyMeter {
 public:
  /// What is known of this one, if anything.
  std::optional<placement::PlacementQuality> add(const placement::ClusterState& cluster,
                                                 const placement::Placed& placed);
  std::optional<TopologyMeans> means() const;

 private:
  placement::QualityMeter meter_;
  std::int64_t pods_ = 0;
  std::int64_t bandwidth_permille_ = 0;
  std::int64_t ring_permille_ = 0;
  std::int64_t numa_nodes_ = 0;
  std::int64_t pods_with_numa_ = 0;
};

}  // namespace mortise::sim
