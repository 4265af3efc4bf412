#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/placement/topology_levels.h"
#include "sim/arrivals.h"
#include "sim/curve.h"
#include "sim/workload.h"

namespace mortise::sim {

/// One simulation. The referenced inputs are only read, so runs may share them across threads.
struct ReplaySpec {
  const kube::ClusterFile& cluster;
  const kube::NodeRanks* ranks = nullptr;  ///< null: the tie order is drawn from the seed
  const Workload& workload;
  const ArrivalPlan& arrival;
  std::string policy;
  std::uint64_t seed = 0;
  std::vector<placement::TopologyLevel> levels = {};  ///< above the nodes; empty: as their labels tell
};

/// How well the GPUs of placed pods are joined: means over pods of two and more whole GPUs on nodes whose topology is
/// known, hundredths.
struct TopologyMeans {
  std::int64_t pods = 0;
  double bandwidth_pct = 0;          ///< slowest pair, of that of the machine's best set of the size
  double ring_pct = 0;               ///< slowest link of the best ring, likewise
  std::optional<double> numa_nodes;  ///< that the GPUs are spread over; of the pods for which it is known

  friend bool operator==(const TopologyMeans&, const TopologyMeans&) = default;
};

/// How many domains of a level a gang is in, on average, hundredths.
struct GangSpread {
  std::string level;
  double domains = 0;

  friend bool operator==(const GangSpread&, const GangSpread&) = default;
};

/// What became of the gangs. A gang is placed whole or has failed whole.
struct GangFigures {
  std::int64_t arrived = 0;
  std::int64_t placed = 0;
  std::int64_t failed = 0;
  std::vector<GangSpread> spread;  ///< of those placed, levels coarse to fine, nodes last; empty: none was placed

  friend bool operator==(const GangFigures&, const GangFigures&) = default;
};

struct ReplayResult {
  std::string trace;
  std::string policy;
  std::uint64_t seed = 0;
  std::string arrival;
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;
  std::int64_t pods_arrived = 0;
  std::int64_t pods_placed = 0;
  std::int64_t pods_failed = 0;
  std::int64_t pods_pending = 0;
  double allocation_pct = 0;               ///< after the last arrival, hundredths
  std::optional<double> frag_pct_of_idle;  ///< after the last arrival, hundredths; empty when no GPU is idle
  double frag_pct_of_capacity = 0;         ///< after the last arrival, hundredths
  std::optional<TopologyMeans> topology;   ///< empty when there is no such pod
  std::optional<GangFigures> gangs;        ///< empty when the trace has none
  std::vector<CurveRow> curve;

  friend bool operator==(const ReplayResult&, const ReplayResult&) = default;
};

/// Seconds of wall clock, for people only.
struct PhaseTimes {
  double prepare = 0;  ///< build the cluster, order the arrivals, find the typical pods
  double replay = 0;   ///< place the pods
};

/// What a caller may want besides the result.
struct ReplayHooks {
  std::ostream* placements = nullptr;  ///< gets one line per arrival
  std::function<void(std::uint64_t arrived, std::uint64_t of)> on_progress;
  PhaseTimes* times = nullptr;
};

/// Places the pods one at a time, and the gangs one at a time as a whole, in arrival order. A pod that fits nowhere, or
/// a gang that does not fit as a whole, has failed and is never tried again; no pod leaves. The typical pods of the
/// fragmentation measure are those of the whole trace, before the arrival protocol adds or removes any.
Result<ReplayResult> replay(const ReplaySpec& spec, const ReplayHooks& hooks = {});

}  // namespace mortise::sim
