#pragma once

#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

bool looks_like_hwloc_xml(std::string_view text);

/// Reads the XML of hwloc 2 and 3 (`lstopo --of xml`): NUMA nodes with CPUs, memory and distances, the PCIe tree, GPUs
/// that a vendor's library described (NVML, CUDA, RSMI, ...), NICs and NVLinks. hwloc's own reader of Debian 12 (2.9)
/// refuses files of version 3.
Result<Reading> read_hwloc_xml(std::string_view text, std::string_view file);

}  // namespace mortise::topology
