#include "scheduler/placement/placement_quality.h"

namespace mortise::placement {

std::optional<PlacementQuality> QualityMeter::judge(const ClusterState& cluster, NodeId node,
                                                    const DeviceSet& devices) {
  if (devices.size() < 2) return std::nullopt;
  const NodeTopology* topology = cluster.topology_of(cluster.machine_of(node));
  if (topology == nullptr || topology->sets() == nullptr) return std::nullopt;
  const topology::DeviceSets& sets = *topology->sets();
  std::unique_ptr<Machine>& machine = machines_[&sets];
  if (!machine) {
    machine = std::make_unique<Machine>(
        Machine{SetQuality(sets, topology::Objective::kBottleneck), SetQuality(sets, topology::Objective::kRing)});
  }
  const GpuMask gpus = gpu_mask(devices);
  const auto set = static_cast<topology::GpuSet>(gpus);
  return PlacementQuality{machine->bandwidth.ratio(set), machine->ring.ratio(set), topology->numa_width(gpus)};
}

}  // namespace mortise::placement
