#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"
#include "scheduler/placement/device_set.h"
#include "scheduler/placement/node_topology.h"

namespace mortise::placement {

/// A node as the hosts describe it.
struct NodeSpec {
  std::string name;
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t pods = 0;  ///< the most pods the node may hold
  std::int32_t gpus = 0;  ///< 0..kMaxDevices, lost ones included
  std::string model;      ///< GPU model; empty when unknown or none
  bool schedulable = true;
  bool blocked = false;  ///< what its pods hold is not known, so it takes no pod that asks for GPUs
  /// Null: not known. Its GPUs are as many as `gpus`, and device i is the GPU at position i.
  std::shared_ptr<const NodeTopology> topology = nullptr;
  std::int32_t gpus_lost = 0;  ///< so many of `gpus` are unhealthy; which ones is not known
};

/// The part of a node that placement never changes; interned.
struct Machine {
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t pods = 0;
  std::int32_t gpus = 0;
  ModelId model;
  bool schedulable = true;
  bool blocked = false;
  TopologyId topology{};
  std::int32_t gpus_lost = 0;

  friend auto operator<=>(const Machine&, const Machine&) = default;
};

/// Kinds of GPU pods a node runs, as bits: bit 0 for shares of a GPU, bit k for pods of k whole GPUs (31: 31 or more).
using GpuPodKinds = std::uint32_t;
GpuPodKinds gpu_pod_kind(std::int32_t gpus, MilliGpu gpu_milli);

/// All that a decision may depend on. Nodes in the same state are alike.
struct NodeState {
  MachineId machine;
  std::int32_t pods_free = 0;
  MilliCpu cpu_free = 0;
  Bytes memory_free = 0;
  GpuPodKinds kinds = 0;
  BeliefId belief{};                             ///< 0: the pods hold the GPUs missing from `free`, and no more
  std::uint8_t devices = 0;                      ///< how many entries of `free` count
  std::array<std::int16_t, kMaxDevices> free{};  ///< milli-GPU left per device

  std::span<const std::int16_t> free_devices() const { return {free.data(), devices}; }
  int whole_free() const;       ///< devices nothing is on
  MilliGpu milli_free() const;  ///< sum over the devices

  friend bool operator==(const NodeState& a, const NodeState& b);
  std::uint64_t hash() const;
};

}  // namespace mortise::placement
