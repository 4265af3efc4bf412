#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/topology/cpu_layout.h"
#include "scheduler/topology/index_set.h"
#include "scheduler/topology/merge_hints.h"
#include "scheduler/topology/numa_mask.h"

namespace mortise::topology {

/// What a device plugin said about where a device is.
enum class DeviceTopology {
  kNone,   ///< no Topology: the device counts in no NUMA mask
  kEmpty,  ///< a Topology that names no node
  kNodes,  ///< `numa` holds the nodes
};

struct Device {
  std::string id;
  DeviceTopology topology = DeviceTopology::kNone;
  NumaMask numa = 0;
  bool healthy = true;
  bool allocated = false;  ///< to any container, also to one of the pod in question (see Assigned)
  /// Devices of one resource with equal `alike` and equal topology are interchangeable for the plugin's preference.
  std::uint32_t alike = 0;
};

/// One resource of the device manager. At most IndexSet::kCapacity devices.
struct DeviceResource {
  std::string name;
  std::vector<Device> devices;
};

/// Kinds of memory by position in NodeState::memory_types: "memory", then the "hugepages-<size>" of the machine.
inline constexpr std::size_t kMaxMemoryTypes = 6;
using MemoryAmounts = std::array<Bytes, kMaxMemoryTypes>;

/// Memory of one NUMA node as the memory manager keeps it.
struct NumaMemory {
  MemoryAmounts allocatable{};
  MemoryAmounts free{};
  int assignments = 0;  ///< blocks that touch this node
  NumaMask group = 0;   ///< the nodes those blocks span; the node itself when there are none
};

/// Memory held by one container on one group of NUMA nodes.
struct MemoryBlock {
  NumaMask numa = 0;
  std::size_t type = 0;
  Bytes size = 0;
  friend auto operator<=>(const MemoryBlock&, const MemoryBlock&) = default;
};

/// What kubelet's managers know of a node. Plain data; `topology_manager.h` reads it.
struct NodeState {
  NumaNodes nodes;
  CpuLayout cpus;
  IndexSet reserved_cpus;  ///< never handed out exclusively
  IndexSet shared_cpus;    ///< not held exclusively by any container; reserved ones included
  std::vector<std::string> memory_types;
  std::vector<NumaMemory> memory;  ///< by NUMA id; entries of absent ids are empty
  std::vector<DeviceResource> devices;

  bool has_numa(int id) const { return id >= 0 && id < kMaxNumaNodes && (nodes.all & numa_bit(id)) != 0; }
};

/// Takes `block` from the nodes of its group in ascending order, as the memory manager does.
void take_memory(std::vector<NumaMemory>& memory, const MemoryBlock& block);

}  // namespace mortise::topology
