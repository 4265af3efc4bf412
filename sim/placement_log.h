#pragma once

#include <iosfwd>
#include <string>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/decision.h"

namespace mortise::sim {

/// One line: pod name, node name or `FAIL` and the main reason, devices (`0,1`; `-` for none).
void write_placement(std::ostream& out, const std::string& pod, const placement::ClusterState& cluster,
                     const placement::Decision& decision);

}  // namespace mortise::sim
