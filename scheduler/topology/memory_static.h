#pragma once

#include <utility>
#include <vector>

#include "scheduler/topology/admission.h"
#include "scheduler/topology/hints.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/node_state.h"
#include "scheduler/topology/pod_ask.h"

namespace mortise::topology {

/// What changes in the memory manager while a pod's containers are admitted one by one.
struct MemoryUse {
  std::vector<NumaMemory> nodes;
  /// Memory of init containers that will have ended, by the nodes it spans.
  std::vector<std::pair<NumaMask, MemoryAmounts>> reusable;

  Bytes reusable_on(NumaMask mask, std::size_t type) const;
};

bool memory_is_pinned(const KubeletConfig& config, const PodAsk& pod);

/// The pod's amounts as kubelet sums them: of the types that some app container asks for.
std::vector<MemoryAsk> memory_of_pod(const PodAsk& pod);

/// One list per asked type for a container, or for the whole pod. No list at all where the policy does not apply and,
/// unlike with CPUs and devices, also where no nodes fit: then allocation fails later.
std::vector<HintList> memory_hints(const NodeState& node, const MemoryUse& use, const ContainerAsk& container);
std::vector<HintList> memory_hints(const NodeState& node, const MemoryUse& use, const PodAsk& pod);

/// Pins a container's memory under the Topology Manager's answer for it. One that holds some already keeps it.
Refusal allocate_memory(const NodeState& node, MemoryUse& use, const ContainerAsk& container, const Hint& affinity,
                        NumaMask& pinned);

}  // namespace mortise::topology
