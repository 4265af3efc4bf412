#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "traces/workload.h"

namespace mortise::sim {

/// What a trace holds, in figures.
struct TraceStat {
  std::string trace;
  std::int64_t pods = 0;
  std::int64_t share_pods = 0;  ///< ask for a part of one GPU
  std::int64_t model_pods = 0;  ///< accept certain GPU models only
  std::int64_t distinct_requests = 0;
  MilliGpu gpu_demand = 0;
  MilliCpu cpu_demand = 0;
  double memory_demand_gib = 0;
  std::map<std::int32_t, std::int64_t> pods_by_gpus;
  std::int64_t gangs = 0;
  std::int64_t gang_pods = 0;
  std::int64_t largest_gang = 0;  ///< pods

  Nanoseconds last_submit = 0;
  std::int64_t durations_unknown = 0;
  /// Of the known durations, nearest rank; empty when none is known.
  struct Durations {
    Nanoseconds p50 = 0;
    Nanoseconds p90 = 0;
    Nanoseconds p99 = 0;
    Nanoseconds max = 0;
  };
  std::optional<Durations> durations;
};

TraceStat stat_of(const traces::Trace& trace);

std::string stat_json(const TraceStat& stat);
std::string stat_text(const TraceStat& stat);

}  // namespace mortise::sim
