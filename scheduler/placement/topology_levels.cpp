#include "scheduler/placement/topology_levels.h"

#include <algorithm>
#include <set>

#include "scheduler/base/quote.h"

namespace mortise::placement {

std::span<const LevelHierarchy> known_hierarchies() {
  static const std::vector<LevelHierarchy> table = {
      {"Kubernetes",
       HierarchyKind::kPlace,
       {{"region", "topology.kubernetes.io/region"}, {"zone", "topology.kubernetes.io/zone"}}},
      {"Topograph",
       HierarchyKind::kNetwork,
       {{"tier-7", "fabric.topograph.run/tier-7"},
        {"tier-6", "fabric.topograph.run/tier-6"},
        {"tier-5", "fabric.topograph.run/tier-5"},
        {"tier-4", "fabric.topograph.run/tier-4"},
        {"tier-3", "fabric.topograph.run/tier-3"},
        {"tier-2", "fabric.topograph.run/tier-2"},
        {"tier-1", "fabric.topograph.run/tier-1"},
        {"tier-0", "fabric.topograph.run/tier-0"}}},
      {"Topograph before tiers",
       HierarchyKind::kNetwork,
       {{"datacenter", "network.topology.nvidia.com/datacenter"},
        {"core", "network.topology.nvidia.com/core"},
        {"spine", "network.topology.nvidia.com/spine"},
        {"block", "network.topology.nvidia.com/block"},
        {"leaf", "network.topology.nvidia.com/leaf"}}},
      {"GKE",
       HierarchyKind::kNetwork,
       {{"block", "cloud.google.com/gce-topology-block"},
        {"subblock", "cloud.google.com/gce-topology-subblock"},
        {"host", "cloud.google.com/gce-topology-host"}}},
      {"EKS",
       HierarchyKind::kNetwork,
       {{"layer-1", "topology.k8s.aws/network-node-layer-1"},
        {"layer-2", "topology.k8s.aws/network-node-layer-2"},
        {"layer-3", "topology.k8s.aws/network-node-layer-3"}}},
      {"OCI",
       HierarchyKind::kNetwork,
       {{"network-block", "oci.oraclecloud.com/host.network_block_id"}, {"rack", "oci.oraclecloud.com/host.rack_id"}}},
      {"pools", HierarchyKind::kNetwork, {{"rack", "topology.kubernetes.io/rack"}}},
      {"Topograph",
       HierarchyKind::kAccelerator,
       {{"accelerator-domain", "accelerator.topograph.run/domain"},
        {"accelerator-sub-domain", "accelerator.topograph.run/sub-domain"}}},
      {"Topograph before tiers",
       HierarchyKind::kAccelerator,
       {{"accelerator", "network.topology.nvidia.com/accelerator"}}},
      {"GPU Feature Discovery", HierarchyKind::kAccelerator, {{"clique", "nvidia.com/gpu.clique"}}},
      {"EKS", HierarchyKind::kAccelerator, {{"ultraserver", "topology.k8s.aws/ultraserver-id"}}},
  };
  return table;
}

namespace {
std::size_t nodes_with(const CarriedKeys& carried, const std::string& key) {
  const auto found = carried.find(key);
  return found == carried.end() ? 0 : found->second;
}

std::size_t most_carried(const CarriedKeys& carried, const LevelHierarchy& hierarchy) {
  std::size_t most = 0;
  for (const TopologyLevel& level : hierarchy.levels) most = std::max(most, nodes_with(carried, level.key));
  return most;
}
}  // namespace

std::vector<TopologyLevel> levels_carried(const CarriedKeys& carried) {
  std::vector<TopologyLevel> levels;
  for (const HierarchyKind kind : {HierarchyKind::kPlace, HierarchyKind::kNetwork, HierarchyKind::kAccelerator}) {
    const LevelHierarchy* best = nullptr;
    std::size_t most = 0;
    for (const LevelHierarchy& hierarchy : known_hierarchies()) {
      if (hierarchy.kind != kind || most_carried(carried, hierarchy) <= most) continue;
      best = &hierarchy;
      most = most_carried(carried, hierarchy);
    }
    if (best == nullptr) continue;
    for (const TopologyLevel& level : best->levels) {
      if (nodes_with(carried, level.key) > 0) levels.push_back(level);
    }
  }
  return levels;
}

Status check_levels(std::span<const TopologyLevel> levels) {
  if (levels.size() > kMaxLevels) {
    return Error{"topology: " + std::to_string(levels.size()) + " levels; at most " + std::to_string(kMaxLevels)};
  }
  std::set<std::string> names;
  std::set<std::string> keys;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const TopologyLevel& level = levels[i];
    const std::string place = "topology level " + std::to_string(i + 1);
    if (level.name.empty() || level.key.empty()) return Error{place + ": needs a name and the key of a node label"};
    const bool hostname = level.key == kHostnameLabel;
    if (hostname && i + 1 != levels.size()) return Error{place + ": " + level.key + " must be the last, finest one"};
    if (!hostname && level.name == kNodeLevelName) return Error{place + ": 'node' is the level of single nodes"};
    if (!names.insert(level.name).second) return Error{place + ": the name '" + level.name + "' is there twice"};
    if (!keys.insert(level.key).second) return Error{place + ": the label '" + level.key + "' is there twice"};
  }
  return ok_status();
}

Result<std::vector<TopologyLevel>> parse_levels(std::string_view text) {
  std::vector<TopologyLevel> levels;
  const std::string flag = "--levels " + quote(text) + ": ";
  for (std::size_t start = 0; !text.empty() && start <= text.size();) {
    const std::string_view part = text.substr(start, text.find(',', start) - start);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return Error{flag + quote(part) + " is not NAME=LABEL; allowed: NAME=LABEL,... from coarse to fine"};
    }
    levels.push_back({std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))});
    start += part.size() + 1;
  }
  if (const Status status = check_levels(levels); !status) return Error{flag + status.message()};
  return levels;
}

}  // namespace mortise::placement
