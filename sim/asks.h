#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/placement/request.h"
#include "sim/manifest.h"

namespace mortise::sim {

/// A pod that wants a place.
struct AskingPod {
  placement::PodRequest request;
  kube::Labels node_selector;  ///< without the GPU model, which is part of the request
};

/// Members of a gang that are alike: of one role, asking for the same, with the same selector.
struct AskingRole {
  std::string name;
  std::vector<AskingPod> members;  ///< in the order of the file; at least one
  std::int32_t minimum = 0;        ///< so many of them, or nobody
};

/// What is placed as one: a pod for itself, or a gang.
struct Ask {
  std::string name;        ///< NAMESPACE/NAME; of a gang its identity
  std::string convention;  ///< by which the pods say that they are a gang; empty: a pod for itself
  std::string where;       ///< the start of messages about it
  std::vector<AskingRole> roles;
  std::int32_t members = 0;        ///< all of them, those on nodes included
  std::int32_t minimum = 0;        ///< of those that want a place, so many of all roles together
  std::vector<std::string> nodes;  ///< where members are that have a place
  std::string required_level;      ///< of the topology; empty: anywhere
  std::string preferred_level;
  /// Why it is not asked about at all, named as the extender does: it waits, is incomplete or can never be placed.
  std::string obstacle_name;
  std::string obstacle;  ///< in words; empty: it is asked about

  bool is_gang() const { return !convention.empty(); }
};

/// The pods of a manifest as what is placed as one, in the order of their first pods. `placed` are pods of the cluster
/// that have a node: those that are in the same gangs count as members of them. An error, with file and line, is the
/// fault of a pod or of its group object.
Result<std::vector<Ask>> asks_of(const Manifest& manifest, std::span<const kube::Pod> placed = {});

}  // namespace mortise::sim
