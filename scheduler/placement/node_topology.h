#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/topology/device_sets.h"
#include "scheduler/topology/graph.h"
#include "scheduler/topology/index_set.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/node_state.h"

namespace mortise::placement {

/// GPUs of one node: bit i is the device with index i. Only of nodes with a topology, which have at most 64 GPUs.
using GpuMask = std::uint64_t;
static_assert(topology::kMaxGpus <= 64);

/// Who chooses the GPUs of a pod.
enum class AssignmentMode : std::uint8_t {
  kPredicted,  ///< kubelet and the device plugin; we foresee what they may choose
  kEnforced,   ///< we; something on the node honours our choice
};

struct TopologySpec {
  std::shared_ptr<const topology::NodeGraph> graph;
  topology::KubeletConfig kubelet;
  bool policy_assumed = false;  ///< nobody told kubelet's Topology Manager policy; it counts as none
  AssignmentMode mode = AssignmentMode::kPredicted;
  topology::IndexSet reserved_cpus;    ///< never dedicated to a container
  std::vector<Bytes> reserved_memory;  ///< by NUMA id; missing ones are 0

  friend bool operator==(const TopologySpec&, const TopologySpec&) = default;
};

/// The inside of a node and the kubelet on it, as far as they decide what fits. Immutable; nodes alike share one.
class NodeTopology {
 public:
  /// `sets` belong to the graph; null where it has more than topology::kMaxSetGpus GPUs. Refuses what kubelet would not
  /// start with, and managers for which the machine does not tell enough (CPUs or memory per NUMA node).
  static Result<std::shared_ptr<const NodeTopology>> build(TopologySpec spec,
                                                           std::shared_ptr<const topology::DeviceSets> sets);

  const TopologySpec& spec() const { return spec_; }
  const topology::NodeGraph& graph() const { return *spec_.graph; }
  const topology::KubeletConfig& kubelet() const { return spec_.kubelet; }
  bool enforced() const { return spec_.mode == AssignmentMode::kEnforced; }
  const topology::DeviceSets* sets() const { return sets_.get(); }
  int gpus() const { return graph().gpu_count(); }
  GpuMask all_gpus() const { return all_gpus_; }

  /// Kubelet may refuse a pod that fits by count, or dedicates CPUs or memory.
  bool managed() const { return managed_; }
  /// What the device plugin prefers follows from the graph: the way between every pair of GPUs is known.
  bool plugin_known() const { return plugin_known_; }

  /// Kubelet's view of the node with no pod on it. The GPUs are resource 0.
  const topology::NodeState& empty_node() const { return empty_; }
  topology::NumaMask numa_of(int gpu) const { return numa_[static_cast<std::size_t>(gpu)]; }
  /// GPUs with the same NUMA nodes, as one mask per kind, ordered by their first GPU.
  const std::vector<GpuMask>& numa_classes() const { return numa_classes_; }

  /// Whether one NUMA node is near all of these GPUs.
  bool on_one_numa(GpuMask gpus) const { return numa_width(gpus) == 1; }
  /// The fewest NUMA nodes, `pinned` among them, that are near all of these GPUs together; 0 where one says none.
  int numa_width(GpuMask gpus, topology::NumaMask pinned = 0) const;
  topology::NumaMask numa_of_cpus(const topology::IndexSet& cpus) const;
  /// The fewest NUMA nodes that have so many CPUs; 0 for none.
  int least_numa_width_of_cpus(std::size_t count) const;
  /// The least numa_width of any `count` GPUs of the machine; 0 when not known.
  int least_numa_width(int count) const;
  /// Whether the GPUs reach each other over NVLinks among themselves. One GPU does.
  bool nvlinked(GpuMask gpus) const;
  /// Whether any `count` GPUs of the machine do.
  bool always_nvlinked(int count) const;

 private:
  NodeTopology() = default;
  Status fill_empty_node();
  Status fill_cpus();
  Status fill_memory();

  TopologySpec spec_;
  std::shared_ptr<const topology::DeviceSets> sets_;
  GpuMask all_gpus_ = 0;
  bool managed_ = false;
  bool plugin_known_ = false;
  topology::NodeState empty_;
  std::vector<topology::NumaMask> numa_;
  std::vector<GpuMask> numa_classes_;
  std::vector<GpuMask> peers_;  // by GPU: those with a direct NVLink or a way through an NVSwitch
};

/// One NodeTopology for all nodes with the same machine and kubelet, one set of device tables for each machine.
class NodeTopologyTable {
 public:
  Result<std::shared_ptr<const NodeTopology>> intern(const topology::Machine& machine, TopologySpec spec);

 private:
  struct Family {
    std::shared_ptr<const topology::NodeGraph> graph;
    std::shared_ptr<const topology::DeviceSets> sets;
    std::vector<std::shared_ptr<const NodeTopology>> members;
  };

  topology::GraphTable graphs_;
  std::vector<Family> families_;
};

}  // namespace mortise::placement
