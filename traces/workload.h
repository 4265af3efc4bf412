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
  /// Index into Trace::gangs; empty: it is for itself.
  std::optional<std::uint32_t> gang = {};
};

/// Members of a gang that one row of a trace stands for: pods that are alike, one after another in Trace::pods.
struct GangRoleRecord {
  std::string name;         ///< empty: none
  std::uint32_t first = 0;  ///< index into Trace::pods
  std::uint32_t count = 0;
};

/// Pods that start together or not at all. The members of all roles stand one after another in Trace::pods.
struct GangRecord {
  std::string name;
  std::vector<GangRoleRecord> roles;  ///< at least one
  std::string required_level;         ///< of the topology above the nodes; empty: anywhere
  std::string preferred_level;        ///< empty: none

  std::uint32_t first() const { return roles.front().first; }
  std::uint32_t size() const { return roles.back().first + roles.back().count - first(); }
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
  std::vector<GangRecord> gangs = {};
};

/// The models of a gpu_spec, sorted, each once. Empty: any model will do.
std::vector<std::string> split_models(const std::string& gpu_spec);

}  // namespace mortise::traces
