#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "scheduler/topology/admit_case.h"
#include "scheduler/topology/json_fields.h"

namespace mortise::topology {

/// Rows in the order of the NUMA ids of `nodes`; a row is indexed by NUMA id, as kubelet reads it.
void read_distances(JsonFields& fields, const nlohmann::json& json, const std::string& where, NumaNodes& nodes);

/// Whether every distance is there that prefer-closest-numa-nodes may look at.
Status check_distances(const NumaNodes& nodes);

/// The position of "memory" or "hugepages-<size>" in the node's memory types; new sizes are added.
std::size_t memory_type(JsonFields& fields, const std::string& name, const std::string& where, AdmitCase& result);

/// A block of memory {"numa":[0],"type":"memory","size":"1Gi"}.
MemoryBlock read_memory_block(JsonFields& fields, const nlohmann::json& json, const std::string& where,
                              AdmitCase& result);

/// The `node` of a case: NUMA nodes, CPUs, memory and devices.
void read_node(JsonFields& fields, const nlohmann::json& json, AdmitCase& result);

}  // namespace mortise::topology
