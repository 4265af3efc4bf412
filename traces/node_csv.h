#pragma once

#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "traces/workload.h"

namespace mortise::traces {

/// The columns of a node list, in the order they are written.
inline constexpr std::string_view kNodeColumns[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};

/// Reads an openb node list (Alibaba cluster-trace-gpu-v2023). The model of a node without GPUs is dropped.
/// `file_name` is only for messages.
Result<std::vector<NodeRecord>> read_node_csv(std::istream& in, const std::string& file_name);

void write_node_csv(std::ostream& out, std::span<const NodeRecord> nodes);

}  // namespace mortise::traces
