#pragma once

#include "scheduler/base/result.h"
#include "scheduler/topology/admission.h"
#include "scheduler/topology/device_manager.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/merge_hints.h"
#include "scheduler/topology/node_state.h"
#include "scheduler/topology/pod_ask.h"

namespace mortise::topology {

/// Predicts whether kubelet admits a pod to a node, and what its managers allocate: the Topology Manager's policies
/// and scopes over the hints of the device manager, the CPU manager's static and the memory manager's Static policy.
///
/// A pure function: asking changes nothing. The object keeps working memory between calls; one per thread.
class TopologyManager {
 public:
  static constexpr std::size_t kMaxOutcomes = 16'384;

  /// After `max_outcomes` the answer is "not complete", and no.
  explicit TopologyManager(std::size_t max_outcomes = kMaxOutcomes)
      : max_outcomes_(max_outcomes > 0 ? max_outcomes : 1) {}

  /// An error is a configuration with which kubelet does not start on this machine, or a decision that kubelet itself
  /// could not make (too many NUMA nodes in the hints).
  Result<Admission> admit(const NodeState& node, const KubeletConfig& config, const PodAsk& pod,
                          const PreferredAllocation& preferred = {});

 private:
  HintMerger merger_;
  std::size_t max_outcomes_;
};

}  // namespace mortise::topology
