#pragma once

#include <string>
#include <vector>

#include "sim/compare.h"
#include "sim/replay.h"

namespace mortise::sim {

/// Rows of equal length, the first being the heading, as aligned text; `numeric` columns stand to the right.
std::string align_columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& numeric);

/// Key figures of one run and a small curve of allocation over arrived demand.
std::string run_text(const ReplayResult& run);

/// One line per trace and policy.
std::string comparison_text(const Comparison& comparison);

}  // namespace mortise::sim
