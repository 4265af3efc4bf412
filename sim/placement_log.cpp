#include "sim/placement_log.h"

#include <ostream>
#include <variant>

#include "scheduler/placement/device_list.h"

namespace mortise::sim {

void write_placement(std::ostream& out, const std::string& pod, const placement::ClusterState& cluster,
                     const placement::Decision& decision, const std::optional<placement::PlacementQuality>& quality) {
  const auto* placed = std::get_if<placement::Placed>(&decision);
  if (placed == nullptr) {
    const auto* rejected = std::get_if<placement::Rejected>(&decision);
    return write_failed(out, pod, rejected != nullptr ? placement::reason_name(rejected->main_reason) : "Waiting");
  }
  out << pod << ' ' << cluster.node_name(placed->node) << ' ';
  out << (placed->devices.empty() ? "-" : placement::device_list(placed->devices));
  if (quality) {
    out << " bandwidth=" << quality->bandwidth_permille / 10 << '.' << quality->bandwidth_permille % 10 << '%';
    if (quality->numa_nodes > 0) out << " numa=" << quality->numa_nodes;
  }
  out << '\n';
}

void write_failed(std::ostream& out, const std::string& pod, std::string_view reason) {
  out << pod << " FAIL " << reason << " -\n";
}

}  // namespace mortise::sim
