#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/topology/machine.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

/// The node annotation that carries a machine in this form.
inline constexpr std::string_view kTopologyAnnotation = "mortise.dev/topology";

/// Everything a machine says, and nothing it does not: the form of docs/topology.md.
nlohmann::ordered_json to_json(const Machine& machine);
/// The same on one line.
std::string to_json_text(const Machine& machine);

/// A NUMA list as one number, several as a list, none as null.
nlohmann::ordered_json numa_json(const std::vector<int>& ids);

bool looks_like_machine_json(std::string_view text);

/// Reads this form, also what `mortise topo --json` prints: derived values are skipped.
Result<Reading> read_machine_json(std::string_view text, std::string_view file);

}  // namespace mortise::topology
