#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/device_sets.h"
#include "scheduler/topology/graph.h"

namespace mortise::sim {

/// Which sets of GPUs `mortise topo` is asked for, as given on the command line.
struct BestOptions {
  std::vector<std::string> counts;  ///< of --best: numbers, or lists of them; none: nothing is asked
  std::vector<std::string> free;    ///< of --free: lists of GPU indexes; none: all GPUs are free
  std::string objective = "bottleneck";
};

/// What a set of GPUs is worth.
struct RatedSet {
  topology::GpuSet gpus = 0;                ///< empty: there is no such set
  std::optional<topology::SetValue> value;  ///< MB/s; empty where the bandwidth of one of the pairs is not known
};

/// The answer for one size.
struct BestSet {
  int count = 0;
  RatedSet chosen;
  std::string why_none;  ///< where nothing is chosen
  RatedSet all_free;     ///< what could be had if all GPUs were free
  /// The chosen set's share of that in what the objective is about; empty where that is not known or 0.
  std::optional<double> share;
  int may_pick = 0;       ///< how many sets the device plugin may pick, depending on the order it hears of the GPUs
  bool may_fail = false;  ///< whether in some order it picks none
};

struct BestAnswer {
  topology::Objective objective = topology::Objective::kBottleneck;
  topology::GpuSet free = 0;
  std::vector<BestSet> sets;       ///< in the order asked
  std::vector<std::string> notes;  ///< what the ranking had to assume, one line each
};

/// Refuses options that are no question, and machines with more than topology::kMaxSetGpus GPUs.
Result<BestAnswer> find_best(const topology::NodeGraph& graph, const BestOptions& options);

/// What `objective` is about. The device plugin knows no bandwidths; its sets are judged by the slowest pair.
std::int64_t figure_of(topology::Objective objective, const topology::SetValue& value);

}  // namespace mortise::sim
