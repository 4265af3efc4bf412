#include "scheduler/topology/cpu_static.h"

#include <algorithm>
#include <string>

#include "scheduler/topology/cpu_picker.h"

namespace mortise::topology {
namespace {

bool aligned_to_sockets(const CpuLayout& layout, NumaMask mask, int fewest_nodes) {
  const std::size_t numas_per_socket = layout.numas.size() / layout.sockets.size();
  if (numas_per_socket == 0) return false;
  const std::size_t fewest = (static_cast<std::size_t>(fewest_nodes) + numas_per_socket - 1) / numas_per_socket;
  return layout.sockets_in(mask) == fewest;
}

NumaMask nodes_of(const CpuLayout& layout, const IndexSet& cpus) {
  NumaMask nodes = 0;
  for (const CpuGroup& numa : layout.numas) {
    if (!(numa.cpus & cpus).empty()) nodes |= numa_bit(numa.id);
  }
  return nodes;
}

HintList generate(const CpuLayout& layout, bool by_socket, const IndexSet& available, const IndexSet& reusable,
                  std::int64_t asked) {
  std::array<std::int64_t, kMaxNumaNodes> installed{};
  std::array<std::int64_t, kMaxNumaNodes> free{};
  for (const CpuGroup& numa : layout.numas) {
    installed[static_cast<std::size_t>(numa.id)] = static_cast<std::int64_t>(numa.cpus.count());
    free[static_cast<std::size_t>(numa.id)] = static_cast<std::int64_t>((numa.cpus & available).count());
  }
  const NumaMask must_contain = nodes_of(layout, reusable);
  const auto reused = static_cast<std::int64_t>(reusable.count());
  int fewest = static_cast<int>(layout.numas.size());
  HintList hints;
  for_each_submask(layout.numa_nodes, [&](NumaMask mask) {
    std::int64_t total = 0;
    std::int64_t matching = reused;
    for_each_node(mask, [&](int id) {
      total += installed[static_cast<std::size_t>(id)];
      matching += free[static_cast<std::size_t>(id)];
    });
    if (total >= asked) fewest = std::min(fewest, width(mask));
    if ((must_contain & ~mask) == 0 && matching >= asked) hints.push_back({mask, false});
  });
  for (Hint& hint : hints) {
    hint.preferred = width(hint.mask) == fewest || (by_socket && aligned_to_sockets(layout, hint.mask, fewest));
  }
  return hints.empty() ? no_placement() : hints;
}

Refusal check_whole_cores(const NodeState& node, const CpuUse& use, std::int64_t asked) {
  const auto per_core = static_cast<std::int64_t>(node.cpus.per_core());
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  if (per_core > 0 && asked % per_core != 0) {
    return {Reason::kSmtAlignment,
            "SMT Alignment Error: requested " + text(asked) + " cpus not multiple cpus per core = " + text(per_core)};
  }
  const auto physical = static_cast<std::int64_t>((use.shared - node.cpus.whole_cores(node.reserved_cpus)).count());
  if (asked > physical) {
    return {Reason::kSmtAlignment,
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " + text(physical) +
                ", requested CPUs = " + text(asked) + ", CPUs per core = " + text(per_core)};
  }
  return {};
}

// align-by-socket widens the affinity to whole sockets.
IndexSet cpus_under(const CpuLayout& layout, bool by_socket, NumaMask affinity) {
  IndexSet cpus;
  for_each_node(affinity, [&](int id) { cpus |= layout.cpus_of_numa(id); });
  if (!by_socket) return cpus;
  IndexSet widened;
  for (const CpuGroup& socket : layout.sockets) {
    if (!(socket.cpus & cpus).empty()) widened |= socket.cpus;
  }
  return widened;
}

void keep_for_reuse(CpuUse& use, const ContainerAsk& container, const IndexSet& cpus) {
  if (container.role == ContainerRole::kInit) {
    use.reusable |= cpus;
  } else {
    use.reusable -= cpus;
  }
}

}  // namespace

std::int64_t exclusive_cpus(const KubeletConfig& config, const PodAsk& pod, const ContainerAsk& container) {
  if (!config.cpu_static || pod.qos != QosClass::kGuaranteed || pod.pod_level_resources) return 0;
  return container.cpu % 1000 == 0 ? container.cpu / 1000 : 0;
}

std::int64_t exclusive_cpus(const KubeletConfig& config, const PodAsk& pod) {
  return pod_total(pod, [&](const ContainerAsk& container) { return exclusive_cpus(config, pod, container); });
}

HintList cpu_hints(const NodeState& node, const KubeletConfig& config, const CpuUse& use, const PodAsk& pod,
                   const ContainerAsk& container) {
  const std::int64_t asked = exclusive_cpus(config, pod, container);
  if (asked == 0) return no_preference();
  const bool by_socket = config.cpu.align_by_socket;
  if (container.assigned.cpus) {
    const IndexSet& held = *container.assigned.cpus;
    if (static_cast<std::int64_t>(held.count()) != asked) return no_placement();
    return generate(node.cpus, by_socket, held, IndexSet{}, asked);
  }
  return generate(node.cpus, by_socket, use.shared - node.reserved_cpus, use.reusable, asked);
}

HintList cpu_hints(const NodeState& node, const KubeletConfig& config, const CpuUse& use, const PodAsk& pod) {
  const std::int64_t asked = exclusive_cpus(config, pod);
  if (asked == 0) return no_preference();
  const bool by_socket = config.cpu.align_by_socket;
  IndexSet held;
  for (const ContainerAsk& container : pod.containers) {
    if (!container.assigned.cpus) continue;
    const std::int64_t part = exclusive_cpus(config, pod, container);
    if (static_cast<std::int64_t>(container.assigned.cpus->count()) != part) return no_placement();
    held |= *container.assigned.cpus;
  }
  if (static_cast<std::int64_t>(held.count()) == asked) return generate(node.cpus, by_socket, held, IndexSet{}, asked);
  return generate(node.cpus, by_socket, use.shared - node.reserved_cpus, use.reusable | held, asked);
}

Refusal allocate_cpus(const NodeState& node, const KubeletConfig& config, CpuUse& use, const PodAsk& pod,
                      const ContainerAsk& container, NumaMask affinity, IndexSet& granted) {
  const std::int64_t asked = exclusive_cpus(config, pod, container);
  if (asked == 0) return {};
  const bool kept = container.assigned.cpus && config.rules.keep_assigned_cpus;
  if (config.cpu.full_pcpus_only && !kept) {
    if (const Refusal refusal = check_whole_cores(node, use, asked); refusal.refused()) return refusal;
  }
  if (container.assigned.cpus) {
    keep_for_reuse(use, container, *container.assigned.cpus);
    return {};
  }
  const IndexSet allocatable = (use.shared - node.reserved_cpus) | use.reusable;
  const auto wanted = static_cast<std::size_t>(asked);
  IndexSet cpus;
  if (affinity != kAnyNuma) {
    const IndexSet aligned = allocatable & cpus_under(node.cpus, config.cpu.align_by_socket, affinity);
    Result<IndexSet> first = pick_cpus(node.cpus, config.cpu, aligned, std::min(wanted, aligned.count()));
    if (!first) return unexpected(first.message());
    cpus = *first;
  }
  const Result<IndexSet> rest = pick_cpus(node.cpus, config.cpu, allocatable - cpus, wanted - cpus.count());
  if (!rest) return unexpected(rest.message());
  cpus |= *rest;
  use.shared -= cpus;
  granted = cpus;
  keep_for_reuse(use, container, cpus);
  return {};
}

}  // namespace mortise::topology
