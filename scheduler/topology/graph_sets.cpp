#include "scheduler/topology/graph_sets.h"

#include <cstddef>
#include <vector>

namespace mortise::topology {

std::vector<int> nic_distances(const NodeGraph& graph) {
  std::vector<int> distances(static_cast<std::size_t>(graph.gpu_count()), static_cast<int>(LinkClass::kUnknown));
  bool known = false;
  for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) {
    if (graph.nearest_nics(gpu).empty()) continue;
    distances[static_cast<std::size_t>(gpu)] = static_cast<int>(graph.nic_link(gpu, graph.nearest_nics(gpu).front()));
    known = true;
  }
  if (!known) distances.clear();
  return distances;
}

Result<DeviceSets> device_sets_of(const NodeGraph& graph) {
  return DeviceSets::of(graph.bandwidth(), graph.plugin_scores(), nic_distances(graph));
}

}  // namespace mortise::topology
