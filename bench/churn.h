#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/engine.h"

namespace mortise::bench {

/// A cluster in the published proportions, kept half full by GPU: each step decides on one pod and places it, and the
/// oldest pods leave. So no step meets exactly the cluster that an earlier one left in a cache.
class Churn {
 public:
  Churn(std::size_t nodes, const std::string& policy);

  void step();
  double gpu_share_used() const;
  double placed_share() const { return static_cast<double>(placed_) / static_cast<double>(steps_); }

 private:
  void place_next();

  placement::ClusterState cluster_;
  std::vector<placement::PodRequest> pods_;
  std::unique_ptr<placement::Engine> engine_;
  std::deque<AllocationId> held_;
  std::size_t next_ = 0;
  std::size_t steps_ = 0;
  std::size_t placed_ = 0;
};

}  // namespace mortise::bench
