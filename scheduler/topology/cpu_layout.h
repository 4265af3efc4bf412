#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/index_set.h"
#include "scheduler/topology/numa_mask.h"

namespace mortise::topology {

/// Where one logical CPU lies. Ids are the operating system's; `core` is any number shared by the threads of a core.
struct CpuPlace {
  std::int32_t cpu = 0;
  std::int32_t core = 0;
  std::int32_t numa = 0;
  std::int32_t socket = 0;
  std::int32_t cache = 0;  ///< CPUs that share a last-level cache
};

/// CPUs that belong together: a core, a socket, a NUMA node or a cache.
struct CpuGroup {
  std::int32_t id = 0;  ///< a core's id is its lowest CPU, as in kubelet
  IndexSet cpus;
};

/// The CPUs of a machine; never changes.
struct CpuLayout {
  IndexSet all;
  std::vector<CpuGroup> cores;  ///< all groups are sorted by id
  std::vector<CpuGroup> sockets;
  std::vector<CpuGroup> numas;
  std::vector<CpuGroup> caches;
  NumaMask numa_nodes = 0;  ///< the NUMA nodes that have CPUs

  /// Refuses CPU ids outside 0..1023, repeated CPUs and NUMA ids outside 0..63.
  static Result<CpuLayout> build(std::span<const CpuPlace> places);

  std::size_t size() const { return all.count(); }
  const IndexSet& cpus_of_numa(int id) const;
  /// The CPUs of all cores that have a CPU in `cpus`.
  IndexSet whole_cores(const IndexSet& cpus) const;
  // Kubelet divides totals, also on machines whose groups differ in size.
  std::size_t per_core() const { return cores.empty() ? 0 : size() / cores.size(); }
  std::size_t per_socket() const { return sockets.empty() ? 0 : size() / sockets.size(); }
  std::size_t per_cache() const { return caches.empty() ? 0 : size() / caches.size(); }
  /// How many sockets have CPUs in these NUMA nodes.
  std::size_t sockets_in(NumaMask nodes) const;
};

}  // namespace mortise::topology
