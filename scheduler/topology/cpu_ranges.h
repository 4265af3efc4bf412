#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::topology {

/// CPUs first..last, both included.
struct CpuRange {
  int first = 0;
  int last = 0;
  friend auto operator<=>(const CpuRange&, const CpuRange&) = default;
};

/// A set of CPUs in its one form: ascending, with gaps between the ranges.
using CpuRanges = std::vector<CpuRange>;

/// CPU ids are below this; more than any machine has, small enough for sums of counts.
inline constexpr int kMaxCpuId = 65535;

/// Reads Linux' list format, "0-3,8"; empty text is no CPUs.
Result<CpuRanges> parse_cpu_ranges(std::string_view text);
std::string to_text(const CpuRanges& cpus);

/// Brings ranges in any order, also overlapping ones, into the one form.
CpuRanges joined(CpuRanges ranges);
int cpu_count(const CpuRanges& cpus);
/// Whether a CPU is in both; both in the one form.
bool overlap(const CpuRanges& a, const CpuRanges& b);

}  // namespace mortise::topology
