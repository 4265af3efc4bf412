#pragma once

#include <algorithm>

#include "scheduler/placement/decision.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/shape_table.h"

// The policies of the study's simulator (hkust-adsl/kubernetes-scheduler-simulator), which goes with Weng et al.,
// "Beware of Fragmentation", USENIX ATC 2023. Their scores are small integers, mostly 0..100; only their order matters.
namespace mortise::placement {

/// A published score on our scale. Nodes larger than the study's (128 cores, 8 GPUs) can score below 0, hence the
/// offset; it keeps the order down to -900.
constexpr Score published_score(long raw) {
  constexpr long kOffset = 900;
  constexpr long kPoint = 1000;
  return static_cast<Score>(std::clamp((raw + kOffset) * kPoint, 0L, static_cast<long>(kMaxScore)));
}

// The study's normalisation constants: the largest node it has.
inline constexpr double kStudyMaxCpu = 128000;
inline constexpr double kStudyMaxGpu = 8000;

/// Best-fit's score before its min-max normalisation, which never changes the winner: of the feasible nodes, the one
/// with the least CPU and GPU left.
long best_fit_raw(const NodeState& state, const PodShape& pod);

}  // namespace mortise::placement
