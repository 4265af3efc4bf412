#pragma once

#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/placement/domains.h"

namespace mortise::sim {

/// The domains of a cluster made of this file. Without levels, those that the nodes' labels tell.
placement::Domains make_domains(const placement::ClusterState& cluster, const kube::ClusterFile& file,
                                const std::vector<placement::TopologyLevel>& levels);

/// An error that lists the levels there are, when this is none of them. Empty is a level, too: the cluster.
Status check_level(const placement::Domains& domains, std::string_view level);

}  // namespace mortise::sim
