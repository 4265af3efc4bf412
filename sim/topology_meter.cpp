#include "sim/topology_meter.h"

#include "sim/curve.h"

namespace mortise::sim {

std::optional<placement::PlacementQuality> TopologyMeter::add(const placement::ClusterState& cluster,
                                                              const placement::Placed& placed) {
  const auto quality = meter_.judge(cluster, placed.node, placed.devices);
  if (!quality) return quality;
  ++pods_;
  bandwidth_permille_ += quality->bandwidth_permille;
  ring_permille_ += quality->ring_permille;
  numa_nodes_ += quality->numa_nodes;
  if (quality->numa_nodes > 0) ++pods_with_numa_;
  return quality;
}

std::optional<TopologyMeans> TopologyMeter::means() const {
  if (pods_ == 0) return std::nullopt;
  const auto mean = [](std::int64_t sum, std::int64_t of) {
    return round_hundredths(static_cast<double>(sum) / static_cast<double>(of));
  };
  TopologyMeans means;
  means.pods = pods_;
  means.bandwidth_pct = mean(bandwidth_permille_, 10 * pods_);
  means.ring_pct = mean(ring_permille_, 10 * pods_);
  if (pods_with_numa_ > 0) means.numa_nodes = mean(numa_nodes_, pods_with_numa_);
  return means;
}

}  // namespace mortise::sim
