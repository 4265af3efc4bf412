#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/topology/cpu_ranges.h"
#include "scheduler/topology/kubelet_config.h"

// What a topology source says about a machine: plain data. Empty optionals, empty NUMA lists and missing links mean
// "the source does not say". `graph.h` makes it usable.

namespace mortise::topology {

/// How far apart two PCIe devices are, nearest first, in the words of `nvidia-smi topo -m`.
enum class LinkClass : std::uint8_t {
  kPix,   ///< at most one PCIe switch
  kPxb,   ///< several PCIe switches, no host bridge
  kPhb,   ///< one PCIe host bridge
  kNode,  ///< several host bridges of one NUMA node
  kSys,   ///< across NUMA nodes or sockets
  kSoc,   ///< what drivers of 2016-17 called SYS
  kUnknown,
};

/// "PIX", ...; empty for kUnknown.
std::string_view to_text(LinkClass link);
std::optional<LinkClass> parse_link_class(std::string_view text);

struct NumaDistance {
  int to = 0;
  int value = 0;  ///< as in the firmware's SLIT: 10 is local
  friend auto operator<=>(const NumaDistance&, const NumaDistance&) = default;
};

struct NumaNode {
  int id = 0;
  std::optional<int> socket;
  std::optional<CpuRanges> cpus;  ///< no CPUs: a memory-only node
  std::optional<int> cpu_count;   ///< where a source counts CPUs without naming them
  std::optional<Bytes> memory;
  std::vector<NumaDistance> distances;  ///< ascending by `to`
  std::optional<int> memory_of_gpu;     ///< index of the GPU whose own memory this node is
  friend auto operator<=>(const NumaNode&, const NumaNode&) = default;
};

enum class BridgeKind : std::uint8_t {
  kHostBridge,
  kSwitch,   ///< a bridge or switch; a port of a switch may be one of its own
  kCascade,  ///< several switches drawn as one: devices on it see each other as PXB
};

struct Bridge {
  BridgeKind kind = BridgeKind::kHostBridge;
  int parent = -1;        ///< position in Machine::bridges, below the own one; -1 for host bridges
  std::vector<int> numa;  ///< of host bridges only: ids, ascending
  std::string bus_id;     ///< PCI address
  friend auto operator<=>(const Bridge&, const Bridge&) = default;
};

struct Gpu {
  int index = 0;  ///< as nvidia-smi counts
  std::string model;
  std::string uuid;
  std::string bus_id;
  std::vector<int> numa;          ///< ids, ascending
  std::optional<CpuRanges> cpus;  ///< CPUs near it
  std::optional<int> bridge;      ///< position in Machine::bridges
  friend auto operator<=>(const Gpu&, const Gpu&) = default;
};

struct Nic {
  std::string name;    ///< "NIC0" or a device name
  std::string device;  ///< "mlx5_0"
  std::string bus_id;
  std::vector<int> numa;
  std::optional<int> bridge;
  friend auto operator<=>(const Nic&, const Nic&) = default;
};

/// Between the GPUs at positions a < b of Machine::gpus.
struct GpuLink {
  int a = 0;
  int b = 0;
  LinkClass pcie = LinkClass::kUnknown;  ///< hidden where NVLinks are shown
  int nvlinks = 0;
  std::optional<bool> switched;  ///< NVLinks run through an NVSwitch
  friend auto operator<=>(const GpuLink&, const GpuLink&) = default;
};

/// Between positions in Machine::gpus and Machine::nics.
struct NicLink {
  int gpu = 0;
  int nic = 0;
  LinkClass pcie = LinkClass::kUnknown;
  friend auto operator<=>(const NicLink&, const NicLink&) = default;
};

/// What a source tells about kubelet on the node.
struct KubeletFacts {
  std::optional<TopologyPolicy> policy;
  std::optional<TopologyScope> scope;
  std::optional<int> max_numa_nodes;

  /// What this does not say, as `other` says it.
  KubeletFacts or_else(const KubeletFacts& other) const {
    return {policy ? policy : other.policy, scope ? scope : other.scope,
            max_numa_nodes ? max_numa_nodes : other.max_numa_nodes};
  }
  friend auto operator<=>(const KubeletFacts&, const KubeletFacts&) = default;
};

struct Machine {
  std::vector<NumaNode> numa;   ///< ascending by id
  std::vector<Bridge> bridges;  ///< parents before children
  std::vector<Gpu> gpus;        ///< ascending by index
  std::vector<Nic> nics;
  std::vector<GpuLink> gpu_links;  ///< ascending by (a, b)
  std::vector<NicLink> nic_links;  ///< ascending by (gpu, nic)
  KubeletFacts kubelet;
  /// False where a source counts GPUs per NUMA node without saying which index is where.
  bool gpus_numbered = true;
  friend auto operator<=>(const Machine&, const Machine&) = default;
};

inline constexpr int kMaxGpus = 64;
inline constexpr int kMaxNics = 1024;
inline constexpr int kMaxNvLinks = 64;

/// Whether the parts fit together; the message names the part that does not.
Status check(const Machine& machine);

/// Makes entries in `numa` for the ids that GPUs, NICs and host bridges name.
void add_named_numa(Machine& machine);
NumaNode& numa_node(Machine& machine, int id);

/// The machine without what tells two alike ones apart: UUIDs and PCI addresses.
Machine without_identity(Machine machine);

}  // namespace mortise::topology
