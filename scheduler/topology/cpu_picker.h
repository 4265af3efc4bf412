#pragma once

#include <cstddef>

#include "scheduler/base/result.h"
#include "scheduler/topology/cpu_layout.h"
#include "scheduler/topology/kubelet_config.h"

namespace mortise::topology {

/// Which `count` CPUs of `available` the CPU manager's static policy takes. Exact: whole sockets and NUMA nodes first,
/// then caches where the option asks, whole cores, single CPUs; each kind in ascending order of what is free in it.
/// An error is kubelet's own text; it fails the pod's admission.
Result<IndexSet> pick_cpus(const CpuLayout& layout, const CpuManagerOptions& options, const IndexSet& available,
                           std::size_t count);

}  // namespace mortise::topology
