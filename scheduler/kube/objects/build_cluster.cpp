#include <optional>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/bound_pods.h"
#include "scheduler/kube/objects/cluster_file.h"

namespace mortise::kube {
namespace {

using placement::ClusterState;
using placement::DeviceSet;

Status apply_pod(const BoundPod& pod, ClusterState& cluster) {
  const std::optional<NodeId> node = cluster.find_node(pod.node);
  if (!node) return Error{"node " + quote(pod.node) + " is not in the cluster"};
  std::optional<DeviceSet> devices = pod.devices;
  if (pod.devices.empty()) devices = lowest_devices(cluster.state_of(*node).free_devices(), pod.request);
  if (!devices) return Error{"node " + quote(pod.node) + " has too few free GPUs for it"};
  // Elsewhere the annotation is what was foreseen, and kubelet may have chosen others.
  const placement::NodeTopology* topology = cluster.topology_of(cluster.machine_of(*node));
  const bool sure = !pod.devices.empty() && (topology == nullptr || topology->enforced());
  const auto knowledge = sure ? placement::Knowledge::kExact : placement::Knowledge::kUnknown;
  const auto applied = cluster.apply(cluster.intern(pod.request), *node, *devices, knowledge);
  if (!applied) return Error{"node " + quote(pod.node) + ": " + applied.message()};
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<ClusterState>> build_cluster(const ClusterFile& file, const NodeRanks* ranks,
                                                    std::uint64_t seed) {
  auto cluster = std::make_unique<ClusterState>();
  for (const placement::NodeSpec& node : file.nodes) {
    std::uint64_t rank = 0;
    if (ranks == nullptr) {
      rank = seeded_rank(seed, node.name);
    } else {
      const auto given = ranks->find(node.name);
      if (given == ranks->end()) return Error{"node " + quote(node.name) + " has no rank in the node ranks"};
      rank = given->second;
    }
    if (const auto added = cluster->add_node(node, rank); !added) return added.error();
  }
  for (const std::size_t i : booking_order(file.pods)) {
    const BoundPod& pod = file.pods[i];
    if (const Status applied = apply_pod(pod, *cluster); !applied) {
      return Error{"pod " + quote(pod.request.ns + "/" + pod.request.name) + ": " + applied.message()};
    }
  }
  return cluster;
}

}  // namespace mortise::kube
