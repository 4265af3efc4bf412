#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/placement_quality.h"

namespace mortise::sim {

/// One line: pod name, node name or `FAIL` and the main reason, devices (`0,1`; `-` for none), and where `quality` is
/// known how well the devices are joined (`bandwidth=50.0% numa=2`).
void write_placement(std::ostream& out, const std::string& pod, const placement::ClusterState& cluster,
                     const placement::Decision& decision,
                     const std::optional<placement::PlacementQuality>& quality = std::nullopt);

/// The same for a pod that has no place, for this reason.
void write_failed(std::ostream& out, const std::string& pod, std::string_view reason);

}  // namespace mortise::sim
