#include "sim/placement_log.h"

#include <ostream>
#include <variant>

#include "scheduler/placement/device_list.h"

namespace mortise::sim {

void write_placement(std::ostream& out, const std::string& pod, const placement::ClusterState& cluster,
                     const placement::Decision& decision, const std::optional<placement::PlacementQuality>& quality) {
  out << pod << ' ';
  if (const auto* placed = std::get_if<placement::Placed>(&decision)) {
    out << cluster.node_name(placed->node) << ' ';
    out << (placed->devices.empty() ? "-" : placement::device_list(placed->devices));
  } else {
    const auto* rejected = std::get_if<placement::Rejected>(&decision);
    out << "FAIL " << (rejected != nullptr ? placement::reason_name(rejected->main_reason) : "Waiting") << " -";
  }
  if (quality) {
    out << " bandwidth=" << quality->bandwidth_permille / 10 << '.' << quality->bandwidth_permille % 10 << '%';
    if (quality->numa_nodes > 0) out << " numa=" << quality->numa_nodes;
  }
  out << '\n';
}

}  // namespace mortise::sim
