#include "scheduler/topology/graph_sets.h"

#include <algorithm>

namespace mortise::topology {

std::vector<int> nic_distances(const NodeGraph& graph) {
  std::vector<int> distances;
  if (graph.machine().nics.empty()) return distances;
  for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) {
    const std::vector<int>& nearest = graph.nearest_nics(gpu);
    const LinkClass link = nearest.empty() ? LinkClass::kSys : graph.nic_link(gpu, nearest.front());
    // SOC is what old drivers called SYS.
    distances.push_back(static_cast<int>(std::min(link, LinkClass::kSys)));
  }
  return distances;
}

Result<DeviceSets> device_sets_of(const NodeGraph& graph) {
  return DeviceSets::of(graph.bandwidth(), graph.plugin_scores(), nic_distances(graph));
}

}  // namespace mortise::topology
