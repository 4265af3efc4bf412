#pragma once

#include "scheduler/topology/admission.h"
#include "scheduler/topology/hints.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/node_state.h"
#include "scheduler/topology/pod_ask.h"

namespace mortise::topology {

/// What changes in the CPU manager while a pod's containers are admitted one by one.
struct CpuUse {
  IndexSet shared;    ///< the shared pool, reserved CPUs included
  IndexSet reusable;  ///< CPUs of init containers that will have ended
};

/// CPUs that the static policy would dedicate to a container; 0: it stays in the shared pool.
std::int64_t exclusive_cpus(const KubeletConfig& config, const PodAsk& pod, const ContainerAsk& container);
std::int64_t exclusive_cpus(const KubeletConfig& config, const PodAsk& pod);

/// Hints for a container, or for the whole pod. `no_preference()` where the policy does not apply.
HintList cpu_hints(const NodeState& node, const KubeletConfig& config, const CpuUse& use, const PodAsk& pod,
                   const ContainerAsk& container);
HintList cpu_hints(const NodeState& node, const KubeletConfig& config, const CpuUse& use, const PodAsk& pod);

/// Dedicates CPUs to a container under `affinity` and tells which. One that holds some already keeps them.
Refusal allocate_cpus(const NodeState& node, const KubeletConfig& config, CpuUse& use, const PodAsk& pod,
                      const ContainerAsk& container, NumaMask affinity, IndexSet& granted);

}  // namespace mortise::topology
