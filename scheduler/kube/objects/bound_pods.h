#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/notes.h"

namespace mortise::kube {

/// The order in which bound pods take devices: those whose devices are known, then those with whole GPUs (a share
/// can go beside another share, a whole GPU needs an untouched one), then the rest; each as in the file.
std::vector<std::size_t> booking_order(const std::vector<BoundPod>& pods);

/// The lowest devices with room for the pod; empty when there are too few.
std::optional<placement::DeviceSet> lowest_devices(std::span<const std::int16_t> free,
                                                   const placement::PodRequest& request);

/// Makes the bound pods of a snapshot fit their nodes, whatever the snapshot says: devices that cannot be right are
/// forgotten, and a node that holds more than it has (its allocatable fell) counts as exactly full.
/// A pod beyond any bound is dropped and its node closed. Every pod's node must be among the nodes.
void settle_bound_pods(ClusterFile& file, Notes& notes);

/// Drops nothing silently: the node takes no more GPU pods, and a note says why.
void close_node(placement::NodeSpec& node, const std::string& pod, const std::string& why, Notes& notes);

}  // namespace mortise::kube
