#pragma once

#include <array>
#include <cstdint>

#include "scheduler/extender/gang_record.h"
#include "scheduler/extender/observations.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/headroom.h"

namespace mortise::extender {

/// The cluster in numbers.
struct ClusterFigures {
  placement::ClusterTotals totals;
  placement::Headroom headroom;
  double fragmentation = 0;      ///< milli-GPU free that a typical pod could not use
  std::int64_t states = 0;       ///< kinds of nodes that placement tells apart now
  std::int64_t cordoned = 0;     ///< nodes
  std::int64_t blocked = 0;      ///< nodes: what their pods hold is not known
  std::int64_t no_topology = 0;  ///< nodes with GPUs whose inside or kubelet policy nobody tells

  std::array<Observations::Counts, kWitnesses.size()> observed{};  ///< by who saw it, since the start
  std::uint64_t failed_queries = 0;                                ///< for DCGM series

  std::array<std::int64_t, kGangPhaseCount> gangs{};  ///< by GangPhase
  GangFigures gang_life;

  /// Of all GPUs, 0 to 1; 0 without any.
  double fragmentation_ratio() const { return ratio(fragmentation, static_cast<double>(totals.gpu_capacity)); }
  /// Of the idle GPUs.
  double fragmentation_of_idle() const {
    return ratio(fragmentation, static_cast<double>(totals.gpu_capacity - totals.gpu_used));
  }
  double allocation_ratio() const {
    return ratio(static_cast<double>(totals.gpu_used), static_cast<double>(totals.gpu_capacity));
  }

 private:
  static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
};

}  // namespace mortise::extender
