#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "traces/arrival.h"
#include "traces/workload.h"

namespace mortise::sim {

/// How pods arrive: the `--arrival` option with the file it names, read once.
struct ArrivalPlan {
  traces::ArrivalSpec spec;
  std::string label;      ///< for outputs: the option, with the file's name but not its folder
  std::string file_text;  ///< content of the order file
};

Result<ArrivalPlan> load_arrival(std::string_view option);

/// The arrivals of one run; the same for every policy.
Result<std::vector<traces::Arrival>> make_arrivals(const ArrivalPlan& plan, const traces::Trace& trace,
                                                   MilliGpu capacity, std::uint64_t seed);

}  // namespace mortise::sim
