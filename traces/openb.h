#pragma once

#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "traces/workload.h"

namespace mortise::traces {

/// Columns of a pod list of Alibaba cluster-trace-gpu-v2023, in the order they are written. A file has all of them or
/// the first kOpenbRequired (then nothing is known of times: all pods are submitted at 0 and never end). Beside them it
/// may have those of gang_rows.h, which the published lists do not have.
inline constexpr std::string_view kOpenbColumns[] = {"name",          "cpu_milli",     "memory_mib",    "num_gpu",
                                                     "gpu_milli",     "gpu_spec",      "qos",           "pod_phase",
                                                     "creation_time", "deletion_time", "scheduled_time"};
inline constexpr std::size_t kOpenbRequired = 5;

/// Reads a pod list as the published study does: gpu_milli counts up to 1000, is 1000 for a pod with several GPUs, and
/// neither it nor gpu_spec means anything for a pod without GPUs. A pod's duration runs from its start, or from its
/// creation if it never started.
Result<Trace> read_openb(std::istream& in, const std::string& file_name);

/// Writes all columns but those of gangs; times are cut to whole seconds.
void write_openb_pods(std::ostream& out, std::span<const PodRecord> pods);

/// "default" for "any/folder/openb_pod_list_default.csv".
std::string openb_trace_name(std::string_view file_name);

}  // namespace mortise::traces
