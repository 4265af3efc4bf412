#include "scheduler/kube/objects/node_topology.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/topology/cpu_picker.h"
#include "scheduler/topology/sources/catalogue.h"

namespace mortise::kube {
namespace {

using placement::AssignmentMode;
using placement::NodeSpec;
using placement::NodeTopology;
using placement::TopologySpec;
using topology::IndexSet;
using topology::KubeletConfig;
using topology::Machine;
using topology::NodeTopologyReport;
using topology::TopologyPolicy;

/// Neither where the GPUs are nor what joins them.
bool says_nothing(const Machine& machine) {
  return machine.gpu_links.empty() && machine.bridges.empty() &&
         std::all_of(machine.gpus.begin(), machine.gpus.end(),
                     [](const topology::Gpu& gpu) { return gpu.numa.empty(); });
}

KubeletConfig config_of(const topology::KubeletFacts& facts, const KubeletSettings& settings) {
  KubeletConfig config = settings.config;
  config.policy = facts.policy.value_or(TopologyPolicy::kNone);
  config.scope = facts.scope.value_or(topology::TopologyScope::kContainer);
  config.max_allowable_numa_nodes = facts.max_numa_nodes.value_or(config.max_allowable_numa_nodes);
  if (settings.rules) config.rules = *settings.rules;
  return config;
}

/// What keeps kubelet's decisions, or ours, from being foreseen on this machine.
Status check_foreseeable(const Machine& machine, const KubeletConfig& config, AssignmentMode mode) {
  if (mode == AssignmentMode::kEnforced && !machine.gpus_numbered) {
    return Error{"mode is enforced, but no source tells which GPU is near which NUMA node"};
  }
  if (config.policy == TopologyPolicy::kNone) return ok_status();
  const bool located =
      std::none_of(machine.gpus.begin(), machine.gpus.end(), [](const topology::Gpu& gpu) { return gpu.numa.empty(); });
  if (!located && machine.numa.size() != 1) {
    return Error{"kubelet's policy is " + std::string(to_text(config.policy)) +
                 ", but no source tells the NUMA nodes of the GPUs"};
  }
  if (static_cast<int>(machine.numa.size()) > config.max_allowable_numa_nodes) {
    return Error{"kubelet does not start with policy " + std::string(to_text(config.policy)) + " on " +
                 std::to_string(machine.numa.size()) + " NUMA nodes; max-allowable-numa-nodes is " +
                 std::to_string(config.max_allowable_numa_nodes)};
  }
  return ok_status();
}

/// What is reserved of a resource on each NUMA node by NodeResourceTopology; nothing where no zone tells.
std::vector<std::pair<int, std::int64_t>> reserved_by_zone(const NodeTopologyReport* report, std::string_view name) {
  std::vector<std::pair<int, std::int64_t>> reserved;
  if (report == nullptr) return reserved;
  for (const topology::Zone& zone : report->zones) {
    for (const topology::ZoneResource& resource : zone.resources) {
      if (resource.name == name && resource.allocatable < resource.capacity) {
        reserved.emplace_back(zone.numa, resource.capacity - resource.allocatable);
      }
    }
  }
  return reserved;
}

std::size_t whole_cpus(std::int64_t milli) {
  return static_cast<std::size_t>((std::max<std::int64_t>(milli, 0) + 999) / 1000);
}

/// The first that tells: the setting, NodeResourceTopology by zone, the CPUs that are not allocatable. Which CPUs is
/// kubelet's own choice: the static policy picks the reserved ones like those of a container.
Result<IndexSet> reserved_cpus(const topology::CpuLayout& cpus, const KubeletSettings& settings, const NodeSpec& spec,
                               const NodeTopologyReport* report) {
  if (settings.reserved_cpus) {
    if (settings.reserved_cpus->is_subset_of(cpus.all)) return *settings.reserved_cpus;
    return Error{"reserved-cpus names CPUs that the machine does not have"};
  }
  IndexSet reserved;
  const auto pick = [&](const IndexSet& from, std::size_t count) -> Status {
    const auto picked = topology::pick_cpus(cpus, settings.config.cpu, from, std::min(count, from.count()));
    if (!picked) return picked.error();
    reserved |= *picked;
    return ok_status();
  };
  const auto zones = reserved_by_zone(report, "cpu");
  for (const auto& [numa, milli] : zones) {
    if (const Status status = pick(cpus.cpus_of_numa(numa), whole_cpus(milli)); !status) return status.error();
  }
  if (zones.empty()) {
    const std::int64_t milli = static_cast<std::int64_t>(cpus.size()) * 1000 - spec.cpu;
    if (const Status status = pick(cpus.all, whole_cpus(milli)); !status) return status.error();
  }
  return reserved;
}

/// The same for memory; what is not allocatable is taken from the lowest NUMA nodes.
Result<std::vector<Bytes>> reserved_memory(const Machine& machine, const KubeletSettings& settings,
                                           const NodeSpec& spec, const NodeTopologyReport* report) {
  std::vector<Bytes> reserved(topology::kMaxNumaNodes, 0);
  const auto has = [&](std::size_t id) {
    return std::any_of(machine.numa.begin(), machine.numa.end(),
                       [&](const topology::NumaNode& numa) { return numa.id == static_cast<int>(id); });
  };
  if (settings.reserved_memory) {
    reserved = *settings.reserved_memory;
    for (std::size_t id = 0; id < reserved.size(); ++id) {
      if (reserved[id] > 0 && !has(id)) {
        return Error{"reserved-memory names NUMA node " + std::to_string(id) + ", which the machine does not have"};
      }
    }
    return reserved;
  }
  const auto zones = reserved_by_zone(report, "memory");
  for (const auto& [numa, bytes] : zones) reserved[static_cast<std::size_t>(numa)] = bytes;
  Bytes left = -spec.memory;
  for (const topology::NumaNode& numa : machine.numa) left += numa.memory_of_gpu ? 0 : numa.memory.value_or(0);
  for (const topology::NumaNode& numa : machine.numa) {
    if (!zones.empty() || left <= 0) break;
    if (numa.memory_of_gpu) continue;
    const Bytes here = std::min(left, numa.memory.value_or(0));
    reserved[static_cast<std::size_t>(numa.id)] = here;
    left -= here;
  }
  while (!reserved.empty() && reserved.back() == 0) reserved.pop_back();
  return reserved;
}

bool cut_into_mig(const Node& node) {
  const auto product = node.labels.find("nvidia.com/gpu.product");
  return product != node.labels.end() && topology::whole_product(product->second).empty() && !product->second.empty();
}

}  // namespace

Result<NodeTopologies::Made> NodeTopologies::make(Machine machine, const KubeletSettings& settings,
                                                  const NodeSpec& spec, const NodeTopologyReport* report) {
  TopologySpec wanted;
  wanted.kubelet = config_of(machine.kubelet, settings);
  wanted.mode = settings.mode.value_or(AssignmentMode::kPredicted);
  wanted.policy_assumed = !machine.kubelet.policy;
  const bool manages =
      wanted.kubelet.policy != TopologyPolicy::kNone || wanted.kubelet.cpu_static || wanted.kubelet.memory_static;
  if (!manages && (machine.gpus.empty() || says_nothing(machine))) return Made();
  if (machine.gpus.empty()) return Error{"kubelet aligns or dedicates resources, but no source tells the GPUs"};
  if (const Status status = check_foreseeable(machine, wanted.kubelet, wanted.mode); !status) return status.error();
  machine.kubelet = {};  // it is in `wanted`
  if (!wanted.kubelet.memory_static) {
    // Machines of one kind differ by a few pages; where memory decides nothing they shall be alike.
    for (topology::NumaNode& numa : machine.numa) numa.memory.reset();
  }
  auto made = table_.intern(machine, wanted);
  if (!made) return made;
  if (wanted.kubelet.cpu_static) {
    const auto cpus = reserved_cpus((*made)->empty_node().cpus, settings, spec, report);
    if (!cpus) return cpus.error();
    wanted.reserved_cpus = *cpus;
  }
  if (wanted.kubelet.memory_static) {
    auto memory = reserved_memory(machine, settings, spec, report);
    if (!memory) return memory.error();
    for (const topology::NumaNode& numa : machine.numa) {
      const auto id = static_cast<std::size_t>(numa.id);
      if (id < memory->size() && (*memory)[id] > numa.memory.value_or(0)) {
        return Error{"more memory of NUMA node " + std::to_string(numa.id) + " is reserved than it has"};
      }
    }
    wanted.reserved_memory = *std::move(memory);
  }
  return table_.intern(machine, std::move(wanted));
}

Status NodeTopologies::find(const Node& node, const NodeTopologyReport* report, NodeSpec& spec) {
  if (spec.gpus == 0) return ok_status();
  if (cut_into_mig(node)) {
    notes_.add_one_of("nodes whose GPUs are cut into MIG devices have no topology", node.name);
    return ok_status();
  }
  auto found = read_node_sources(&node, report, catalogue_);
  if (!found) return found.error();
  for (const std::string& note : found->reading.notes) notes_.add_one_of(note, node.name);
  if (!node.kubelet_version.empty()) {
    const auto rules = topology::rules_of_release(node.kubelet_version);
    if (rules) {
      found->kubelet.rules = *rules;
    } else {
      notes_.add_one_of("status.nodeInfo.kubeletVersion left out: " + rules.message(), node.name);
    }
  }
  const std::size_t gpus = found->reading.machine.gpus.size();
  if (gpus != 0 && gpus != static_cast<std::size_t>(spec.gpus)) {
    notes_.add_one_of(
        "nodes with another number of allocatable GPUs than their topology count GPUs only, as it is not known which "
        "of them are there",
        node.name);
    return ok_status();
  }
  auto made = make(std::move(found->reading.machine), found->kubelet, spec, report);
  if (!made) {
    notes_.add_one_of("nodes count GPUs only, without topology: " + made.message(), node.name);
    return ok_status();
  }
  spec.topology = *std::move(made);
  return ok_status();
}

}  // namespace mortise::kube
