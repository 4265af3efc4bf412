#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

/// The GPUs that kubelet hands out.
inline constexpr std::string_view kNrtGpuResource = "nvidia.com/gpu";

/// One resource of a zone. CPUs in thousandths, everything else in whole units.
struct ZoneResource {
  std::string name;
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;  ///< where the object gives no amount: the next larger one
  std::int64_t available = 0;
  bool has_available = false;  ///< the object gives it
};

/// What a NodeResourceTopology object reports of one NUMA node.
struct Zone {
  int numa = 0;
  std::string name;
  std::vector<ZoneResource> resources;
};

struct NodeTopologyReport {
  /// NUMA nodes with distances, and as many GPUs on each as the zone has: which index is where is not said.
  Reading reading;
  std::vector<Zone> zones;
  /// When the zones were written last, as the API server has it (metadata.managedFields); or when the object was made.
  std::string written;
};

bool looks_like_nrt_json(std::string_view text);

/// Reads NodeResourceTopology objects (topology.node.k8s.io v1alpha1 and v1alpha2) from JSON: one, or a list of them.
Result<std::vector<NodeTopologyReport>> read_node_topologies(std::string_view json, std::string_view file);

/// One object that is parsed already. `where` is the start of messages.
Result<NodeTopologyReport> decode_node_topology(const nlohmann::json& object, const std::string& where);

/// The same for a text with exactly one.
Result<Reading> read_nrt_json(std::string_view json, std::string_view file);

}  // namespace mortise::topology
