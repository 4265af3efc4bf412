#include "scheduler/topology/topology_manager.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/topology/cpu_static.h"
#include "scheduler/topology/memory_static.h"
#include "scheduler/topology/shortages.h"

namespace mortise::topology {
namespace {

/// One way the run may have gone so far.
struct Branch {
  std::vector<DeviceUse> devices;  ///< by resource
  CpuUse cpus;
  MemoryUse memory;
  Outcome outcome;
};

/// What is asked of one place: a container, or the pod as a whole.
struct Question {
  const NodeState& node;
  const KubeletConfig& config;
  const PodAsk& pod;
  const ContainerAsk* container;  ///< null: the whole pod
};

void count_devices(const DeviceResource& resource, const IndexSet& usable, Supply& supply) {
  for (std::size_t i = 0; i < resource.devices.size(); ++i) {
    for_each_node(resource.devices[i].numa, [&](int id) {
      ++supply.installed[static_cast<std::size_t>(id)];
      if (usable.contains(i)) ++supply.free[static_cast<std::size_t>(id)];
    });
  }
  supply.total_free = static_cast<std::int64_t>(usable.count());
}

void count_cpus(const CpuLayout& layout, const IndexSet& usable, Supply& supply) {
  for (const CpuGroup& numa : layout.numas) {
    supply.installed[static_cast<std::size_t>(numa.id)] = static_cast<std::int64_t>(numa.cpus.count());
    supply.free[static_cast<std::size_t>(numa.id)] = static_cast<std::int64_t>((numa.cpus & usable).count());
  }
  supply.total_free = static_cast<std::int64_t>(usable.count());
}

void count_memory(const MemoryUse& use, std::size_t type, Supply& supply) {
  for (std::size_t id = 0; id < use.nodes.size(); ++id) {
    supply.installed[id] = use.nodes[id].allocatable[type];
    supply.free[id] = use.nodes[id].free[type];
    supply.total_free += use.nodes[id].free[type];
  }
}

/// The hints of all three managers, in kubelet's order of providers. With `counted` also what is behind them.
class HintCollector {
 public:
  HintCollector(const Question& question, const Branch& branch, bool counted)
      : question_(question), branch_(branch), counted_(counted) {}

  std::vector<HintList> lists;
  std::vector<Supply> supplies;

  void collect() {
    for (const DeviceAsk& ask : question_.container ? question_.container->devices : devices_of_pod(question_.pod)) {
      add_devices(ask);
    }
    add_cpus();
    if (memory_is_pinned(question_.config, question_.pod)) add_memory();
  }

 private:
  void add(std::string resource, std::int64_t asked, HintList hints, const auto& count) {
    if (counted_) {
      Supply supply;
      supply.resource = std::move(resource);
      supply.asked = asked;
      supply.hints = hints;
      supply.free.assign(kMaxNumaNodes, 0);
      supply.installed.assign(kMaxNumaNodes, 0);
      count(supply);
      supplies.push_back(std::move(supply));
    }
    lists.push_back(std::move(hints));
  }

  void add_devices(const DeviceAsk& ask) {
    const auto& [node, config, pod, container] = question_;
    const DeviceUse& use = branch_.devices[ask.resource];
    HintList hints = container != nullptr ? device_hints(node, config, use, *container, ask)
                                          : device_hints(node, config, use, pod, ask);
    const DeviceResource& resource = node.devices[ask.resource];
    add(resource.name, ask.count, std::move(hints), [&](Supply& supply) {
      count_devices(resource, container != nullptr ? use.available | use.reusable : use.available, supply);
    });
  }

  void add_cpus() {
    const auto& [node, config, pod, container] = question_;
    const std::int64_t asked =
        container != nullptr ? exclusive_cpus(config, pod, *container) : exclusive_cpus(config, pod);
    if (asked == 0) return;
    HintList hints = container != nullptr ? cpu_hints(node, config, branch_.cpus, pod, *container)
                                          : cpu_hints(node, config, branch_.cpus, pod);
    add("cpu", asked, std::move(hints), [&, reserved = node.reserved_cpus](Supply& supply) {
      count_cpus(question_.node.cpus, (branch_.cpus.shared - reserved) | branch_.cpus.reusable, supply);
    });
  }

  void add_memory() {
    const auto& [node, config, pod, container] = question_;
    const std::vector<MemoryAsk> asks = container != nullptr ? container->memory : memory_of_pod(pod);
    std::vector<HintList> hints =
        container != nullptr ? memory_hints(node, branch_.memory, *container) : memory_hints(node, branch_.memory, pod);
    for (std::size_t i = 0; i < hints.size() && i < asks.size(); ++i) {
      add(node.memory_types[asks[i].type], asks[i].size, std::move(hints[i]),
          [&](Supply& supply) { count_memory(branch_.memory, asks[i].type, supply); });
    }
  }

  const Question& question_;
  const Branch& branch_;
  bool counted_;
};

/// Runs one pod through the node.
class Run {
 public:
  Run(const NodeState& node, const KubeletConfig& config, const PodAsk& pod, const PreferredAllocation& preferred,
      HintMerger& merger)
      : node_(node), config_(config), pod_(pod), preferred_(preferred), merger_(merger) {}

  Result<Admission> admit();

 private:
  void start();
  Status decide(Branch& branch, const ContainerAsk* container, Merged& merged);
  void fail(Branch&& branch, const Refusal& refusal);
  Status admit_container(Branch&& branch, const ContainerAsk& container, std::vector<Branch>& next);
  void allocate(Branch&& branch, const ContainerAsk& container, std::size_t ask, std::vector<Branch>& next);
  void allocate_rest(Branch&& branch, const ContainerAsk& container, std::vector<Branch>& next);

  const NodeState& node_;
  const KubeletConfig& config_;
  const PodAsk& pod_;
  const PreferredAllocation& preferred_;
  HintMerger& merger_;
  std::optional<Merged> pod_affinity_;
  std::vector<Branch> live_;
  Admission admission_;
};

void Run::start() {
  Branch branch;
  for (const DeviceResource& resource : node_.devices) branch.devices.push_back(DeviceUse::of(resource));
  branch.cpus.shared = node_.shared_cpus;
  branch.memory.nodes = node_.memory;
  live_.push_back(std::move(branch));
}

void Run::fail(Branch&& branch, const Refusal& refusal) {
  branch.outcome.reason = refusal.reason;
  branch.outcome.message = refusal.message;
  admission_.outcomes.push_back(std::move(branch.outcome));
}

// Merges the hints for a container or the pod; fills the explanation when they are refused.
Status Run::decide(Branch& branch, const ContainerAsk* container, Merged& merged) {
  const Question question{node_, config_, pod_, container};
  HintCollector hints(question, branch, false);
  hints.collect();
  const Result<Merged> result = merger_.merge(config_, node_.nodes, hints.lists);
  if (!result) return result.error();
  merged = *result;
  if (!merged.admit) {
    HintCollector counted(question, branch, true);
    counted.collect();
    explain_refusal(config_, node_.nodes, container != nullptr ? container->name : "", counted.supplies, merged,
                    branch.outcome.shortages, branch.outcome.why);
  }
  return ok_status();
}

Status Run::admit_container(Branch&& branch, const ContainerAsk& container, std::vector<Branch>& next) {
  ContainerOutcome place;
  place.name = container.name;
  if (config_.policy != TopologyPolicy::kNone) {
    Merged merged;
    if (pod_affinity_) {
      merged = *pod_affinity_;
    } else if (const Status decided = decide(branch, &container, merged); !decided) {
      return decided;
    }
    place.affinity = merged.affinity;
    place.preferred = merged.preferred;
    branch.outcome.containers.push_back(std::move(place));
    if (!merged.admit) {
      fail(std::move(branch), {Reason::kTopologyAffinity, "Resources cannot be allocated with Topology locality"});
      return ok_status();
    }
  } else {
    branch.outcome.containers.push_back(std::move(place));
  }
  allocate(std::move(branch), container, 0, next);
  return ok_status();
}

// Devices resource by resource, each with all its possible results; then CPUs and memory.
void Run::allocate(Branch&& branch, const ContainerAsk& container, std::size_t ask, std::vector<Branch>& next) {
  if (ask == container.devices.size()) {
    allocate_rest(std::move(branch), container, next);
    return;
  }
  const DeviceAsk& wanted = container.devices[ask];
  const std::size_t used = next.size() + admission_.outcomes.size();
  const std::size_t limit = used < TopologyManager::kMaxOutcomes ? TopologyManager::kMaxOutcomes - used : 0;
  std::vector<DeviceResult> results;
  const Refusal refusal = allocate_devices(node_, branch.devices[wanted.resource], container, wanted,
                                           branch.outcome.containers.back().affinity, preferred_, config_.rules, limit,
                                           results, admission_.complete);
  if (refusal.refused()) {
    fail(std::move(branch), refusal);
    return;
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    Branch copy = i + 1 < results.size() ? branch : std::move(branch);
    copy.devices[wanted.resource] = std::move(results[i].use);
    DeviceGrant& grant = results[i].grant;
    if (wanted.count > 0) copy.outcome.containers.back().devices.push_back(std::move(grant));
    allocate(std::move(copy), container, ask + 1, next);
  }
}

void Run::allocate_rest(Branch&& branch, const ContainerAsk& container, std::vector<Branch>& next) {
  ContainerOutcome& place = branch.outcome.containers.back();
  Refusal refusal = allocate_cpus(node_, config_, branch.cpus, pod_, container, place.affinity, place.cpus);
  if (!refusal.refused() && memory_is_pinned(config_, pod_)) {
    refusal = allocate_memory(node_, branch.memory, container, {place.affinity, place.preferred}, place.memory);
  }
  if (refusal.refused()) {
    fail(std::move(branch), refusal);
  } else {
    next.push_back(std::move(branch));
  }
}

Result<Admission> Run::admit() {
  start();
  if (config_.policy != TopologyPolicy::kNone && config_.scope == TopologyScope::kPod) {
    Merged merged;
    if (const Status decided = decide(live_.front(), nullptr, merged); !decided) return decided.error();
    pod_affinity_ = merged;
  }
  for (const ContainerAsk& container : pod_.containers) {
    std::vector<Branch> next;
    for (Branch& branch : live_) {
      if (const Status status = admit_container(std::move(branch), container, next); !status) return status.error();
    }
    live_ = std::move(next);
  }
  for (Branch& branch : live_) {
    branch.outcome.admit = true;
    admission_.outcomes.push_back(std::move(branch.outcome));
  }
  const auto admits = [](const Outcome& outcome) { return outcome.admit; };
  const bool all = std::all_of(admission_.outcomes.begin(), admission_.outcomes.end(), admits);
  const bool none = std::none_of(admission_.outcomes.begin(), admission_.outcomes.end(), admits);
  admission_.admit = all && admission_.complete;
  admission_.certain = (all || none) && admission_.complete;
  return std::move(admission_);
}

Status check_machine(const NodeState& node, const KubeletConfig& config) {
  if (config.policy != TopologyPolicy::kNone) {
    const int nodes = width(node.nodes.all);
    if (nodes > config.max_allowable_numa_nodes) {
      return Error{"kubelet does not start with topology manager policy " + std::string(to_text(config.policy)) +
                   " on " + std::to_string(nodes) + " NUMA nodes; max-allowable-numa-nodes is " +
                   std::to_string(config.max_allowable_numa_nodes)};
    }
  }
  if (config.cpu_static && config.cpu.align_by_socket && node.cpus.sockets.size() > node.cpus.numas.size()) {
    return Error{"kubelet does not start with align-by-socket on a machine with more sockets than NUMA nodes"};
  }
  const int counted =
      std::max(config.cpu_static ? width(node.cpus.numa_nodes) : 0, config.memory_static ? width(node.nodes.all) : 0);
  if (config.policy != TopologyPolicy::kNone && counted > HintMerger::kMaxHintNodes) {
    return Error{"hints over " + std::to_string(counted) + " NUMA nodes; at most " +
                 std::to_string(HintMerger::kMaxHintNodes) + " can be merged (kubelet enumerates all their subsets)"};
  }
  return ok_status();
}

}  // namespace

std::string_view to_text(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kTopologyAffinity:
      return "TopologyAffinityError";
    case Reason::kUnexpectedAdmission:
      return "UnexpectedAdmissionError";
    case Reason::kSmtAlignment:
      return "SMTAlignmentError";
  }
  return "";
}

Result<Admission> TopologyManager::admit(const NodeState& node, const KubeletConfig& config, const PodAsk& pod,
                                         const PreferredAllocation& preferred) {
  if (const Status status = check(config); !status) return status.error();
  if (const Status status = check_machine(node, config); !status) return status.error();
  return Run(node, config, pod, preferred, merger_).admit();
}

}  // namespace mortise::topology
