#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/units.h"

namespace mortise::traces {

/// One pod of a trace. Readers turn every format into this.
struct PodRecord {
  std::string name;
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t gpus = 0;                 ///< how many GPUs; 0 for a CPU-only pod
  MilliGpu gpu_milli = 0;                ///< share asked of each GPU, 1..1000; 0 when gpus is 0
  std::string gpu_spec;                  ///< allowed models as the trace spells them ("A|B"); empty: any
  Nanoseconds submit = 0;                ///< from the start of the trace
  std::optional<Nanoseconds> duration;   ///< empty: unknown, runs to the end of the trace
  std::optional<Nanoseconds> wait = {};  ///< from submit to start as recorded; empty: never started, or unknown
  std::string status = {};               ///< how it ended, as the trace spells it; empty: unknown
  std::string qos = {};                  ///< service class, as the trace spells it; empty: none
};

/// One node of a node list.
struct NodeRecord {
  std::string name;
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t gpus = 0;
  std::string model;  ///< GPU model; empty for a node without GPUs
};

struct Trace {
  std::string name;  ///< e.g. "default" of openb_pod_list_default.csv
  std::vector<PodRecord> pods;
};

/// The models of a gpu_spec, sorted, each once. Empty: any model will do.
std::vector<std::string> split_models(const std::string& gpu_spec);

}  // namespace mortise::traces
