#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/topology/cpu_ranges.h"

namespace mortise::topology {

/// hwloc's bitmaps as text: 32-bit words in hexadecimal, highest first, "0x00ff,,0x1"; an empty word is 0. Nothing for
/// text of another form, and for endless sets.
std::optional<CpuRanges> parse_hwloc_set(std::string_view text);

/// The members one by one.
std::vector<int> members(const CpuRanges& set);

}  // namespace mortise::topology
