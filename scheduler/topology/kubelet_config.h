#pragma once

#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::topology {

enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };
enum class TopologyScope { kContainer, kPod };

/// Options of the CPU manager's static policy (kubelet: cpuManagerPolicyOptions). strict-cpu-reservation is accepted
/// but not kept: reserved CPUs are never handed out exclusively with or without it.
struct CpuManagerOptions {
  bool full_pcpus_only = false;
  bool distribute_across_numa = false;
  bool align_by_socket = false;
  bool distribute_across_cores = false;
  bool prefer_align_by_uncore_cache = false;
  friend bool operator==(const CpuManagerOptions&, const CpuManagerOptions&) = default;
};

/// What differs between kubelet releases. The defaults are those of 1.36.
struct KubeletRules {
  /// A merged hint is preferred only if all masks are equal (since 1.24, kubernetes/kubernetes#108052).
  bool equal_masks = true;
  /// Device hints range over the NUMA nodes that have devices of the resource, not over all (since 1.36,
  /// kubernetes/kubernetes#138244).
  bool device_nodes_only = true;
  /// A device whose Topology names no node makes its resource aligned (copies of kubelet from before 1.34).
  bool empty_topology_aligns = false;
  /// full-pcpus-only does not judge CPUs that were assigned before a restart (since 1.37).
  bool keep_assigned_cpus = false;
  friend bool operator==(const KubeletRules&, const KubeletRules&) = default;
};

struct KubeletConfig {
  TopologyPolicy policy = TopologyPolicy::kNone;
  TopologyScope scope = TopologyScope::kContainer;
  bool prefer_closest = false;       ///< prefer-closest-numa-nodes
  int max_allowable_numa_nodes = 8;  ///< max-allowable-numa-nodes
  bool cpu_static = false;           ///< cpuManagerPolicy: static
  CpuManagerOptions cpu;
  bool memory_static = false;  ///< memoryManagerPolicy: Static
  KubeletRules rules;
  friend bool operator==(const KubeletConfig&, const KubeletConfig&) = default;
};

std::string_view to_text(TopologyPolicy policy);

Result<TopologyPolicy> parse_topology_policy(std::string_view text);
Result<TopologyScope> parse_topology_scope(std::string_view text);
/// The rules of a kubelet release, "1.36" or "v1.36.3".
Result<KubeletRules> rules_of_release(std::string_view text);

/// Sets an option by kubelet's name and spelling of the value.
Status set_topology_option(KubeletConfig& config, std::string_view name, std::string_view value);
Status set_cpu_option(KubeletConfig& config, std::string_view name, std::string_view value);

/// Refuses combinations with which kubelet does not start on any machine.
Status check(const KubeletConfig& config);

}  // namespace mortise::topology
