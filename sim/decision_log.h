#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/node.h"
#include "scheduler/placement/device_set.h"
#include "scheduler/placement/request.h"

namespace mortise::sim {

// What a line of a decision log says happened; docs/replay.md describes the form.

struct NodeSeen {
  kube::Node node;
};
struct NodeGone {
  std::string name;
};
/// A pod was given a place.
struct PodDecided {
  placement::PodRequest pod;
  std::string node;
  placement::DeviceSet devices;
  std::vector<std::string> candidates;  ///< the nodes that were asked about; empty: all
};
/// A pod took a place that somebody else chose.
struct PodBound {
  placement::PodRequest pod;
  std::string node;
};
/// A pod's place is free again.
struct PodEnded {
  std::string uid;
};
using LogEvent = std::variant<NodeSeen, NodeGone, PodDecided, PodBound, PodEnded>;

/// Reads a log line by line and hands over what it says, in its order. An error, also one of `use`, names file and
/// line.
Status read_decision_log(const std::string& path, const std::function<Status(LogEvent)>& use);

}  // namespace mortise::sim
