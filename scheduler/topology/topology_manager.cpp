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
    const Question& q = question_;
    const DeviceUse& use = branch_.devices[ask.resource];
    HintList hints = q.container != nullptr ? device_hints(q.node, q.config, use, *q.container, ask)
                                            : device_hints(q.node, q.config, use, q.pod, ask);
    const DeviceResource& resource = q.node.devices[ask.resource];
    add(resource.name, ask.count, std::move(hints), [&](Supply& supply) {
      count_devices(resource, q.container != nullptr ? use.available | use.reusable : use.available, supply);
    });
  }

  void add_cpus() {
    const Question& q = question_;
    const std::int64_t asked =
        q.container != nullptr ? exclusive_cpus(q.config, q.pod, *q.container) : exclusive_cpus(q.config, q.pod);
    if (asked == 0) return;
    HintList hints = q.container != nullptr ? cpu_hints(q.node, q.config, branch_.cpus, q.pod, *q.container)
                                            : cpu_hints(q.node, q.config, branch_.cpus, q.pod);
    add("cpu", asked, std::move(hints), [&](Supply& supply) {
      count_cpus(q.node.cpus, (branch_.cpus.shared - q.node.reserved_cpus) | branch_.cpus.reusable, supply);
    });
  }

  void add_memory() {
    const Question& q = question_;
    const std::vector<MemoryAsk> asks = q.container != nullptr ? q.container->memory : memory_of_pod(q.pod);
    std::vector<HintList> hints = q.container != nullptr ? memory_hints(q.node, branch_.memory, *q.container)
                                                         : memory_hints(q.node, branch_.memory, q.pod);
    for (std::size_t i = 0; i < hints.size() && i < asks.size(); ++i) {
      add(q.node.memory_types[asks[i].type], asks[i].size, std::move(hints[i]),
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
      HintMerger& merger, std::size_t max_outcomes)
      : node_(node), config_(config), pod_(pod), preferred_(preferred), merger_(merger), max_outcomes_(max_outcomes) {}

  Result<Admission> admit();

 private:
  Status start();
  Status decide(Branch& branch, const ContainerAsk* container, Merged& merged);
  void fail(Branch&& branch, const Refusal& refusal);
  Status admit_container(Branch&& branch, const ContainerAsk& container, std::vector<Branch>& next);
  bool asked_after(const ContainerAsk& container, std::size_t resource) const;
  void allocate(Branch&& branch, const ContainerAsk& container, std::size_t ask, std::vector<Branch>& next);
  void allocate_rest(Branch&& branch, const ContainerAsk& container, std::vector<Branch>& next);

  const NodeState& node_;
  const KubeletConfig& config_;
  const PodAsk& pod_;
  const PreferredAllocation& preferred_;
  HintMerger& merger_;
  std::size_t max_outcomes_;
  std::optional<Merged> pod_affinity_;
  std::vector<Branch> live_;
  Admission admission_;
};

Status Run::start() {
  Branch branch;
  branch.cpus.shared = node_.shared_cpus;
  branch.memory.nodes = node_.memory;
  const auto look_at_devices = [&](std::optional<NumaMask> fixed) {
    branch.devices.clear();
    for (const DeviceResource& resource : node_.devices) {
      branch.devices.push_back(DeviceUse::of(resource, config_.rules, fixed));
    }
  };
  if (config_.policy == TopologyPolicy::kNone) {
    look_at_devices(kAnyNuma);
  } else {
    look_at_devices(std::nullopt);
    if (config_.scope == TopologyScope::kPod) {
      Merged merged;
      if (const Status decided = decide(branch, nullptr, merged); !decided) return decided;
      pod_affinity_ = merged;
      look_at_devices(merged.affinity);
    }
  }
  live_.push_back(std::move(branch));
  return ok_status();
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
  // What the checkpoints say stays, also where the managers would not act now.
  if (container.assigned.cpus) place.cpus = *container.assigned.cpus;
  for (const MemoryBlock& block : container.assigned.memory) place.memory |= block.numa;
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

bool Run::asked_after(const ContainerAsk& container, std::size_t resource) const {
  const auto after = std::find_if(pod_.containers.begin(), pod_.containers.end(),
                                  [&](const ContainerAsk& other) { return &other == &container; });
  return std::any_of(after + 1, pod_.containers.end(), [&](const ContainerAsk& later) {
    return std::any_of(later.devices.begin(), later.devices.end(),
                       [&](const DeviceAsk& ask) { return ask.resource == resource; });
  });
}

// Devices resource by resource, each with all its possible results; then CPUs and memory.
void Run::allocate(Branch&& branch, const ContainerAsk& container, std::size_t ask, std::vector<Branch>& next) {
  if (ask == container.devices.size()) {
    allocate_rest(std::move(branch), container, next);
    return;
  }
  const DeviceAsk& wanted = container.devices[ask];
  const std::size_t used = next.size() + admission_.outcomes.size();
  const std::size_t limit = used < max_outcomes_ ? max_outcomes_ - used : 0;
  DeviceFollowUp follow_up{!asked_after(container, wanted.resource), limit, true};
  std::vector<DeviceResult> results;
  const Refusal refusal = allocate_devices(node_, config_.rules, branch.devices[wanted.resource], container, wanted,
                                           branch.outcome.containers.back().affinity, preferred_, follow_up, results);
  admission_.complete = admission_.complete && follow_up.complete;
  if (refusal.refused()) {
    fail(std::move(branch), refusal);
    return;
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    Branch copy = branch;
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
  if (const Status started = start(); !started) return started.error();
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

// The static policy's search grows with 3^n: half a million steps at this number.
constexpr std::size_t kMaxDistributedNodes = 12;

Status check_machine(const NodeState& node, const KubeletConfig& config, const PodAsk& pod) {
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
  if (config.cpu_static && config.cpu.distribute_across_numa && node.cpus.numas.size() > kMaxDistributedNodes) {
    return Error{"distribute-cpus-across-numa over " + std::to_string(node.cpus.numas.size()) +
                 " NUMA nodes; at most " + std::to_string(kMaxDistributedNodes) +
                 " are supported (kubelet tries all their combinations)"};
  }
  if (config.policy == TopologyPolicy::kNone) return ok_status();
  int most =
      std::max(config.cpu_static ? width(node.cpus.numa_nodes) : 0, config.memory_static ? width(node.nodes.all) : 0);
  for (const DeviceAsk& ask : devices_of_pod(pod)) {
    most = std::max(most, width(hint_nodes(node, config.rules, ask.resource)));
  }
  if (most > HintMerger::kMaxHintNodes) {
    return Error{"hints over " + std::to_string(most) + " NUMA nodes; at most " +
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
  if (const Status status = check_machine(node, config, pod); !status) return status.error();
  return Run(node, config, pod, preferred, merger_, max_outcomes_).admit();
}

}  // namespace mortise::topology
