#include "scheduler/topology/memory_static.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace mortise::topology {
namespace {

const NumaMemory& of_node(const MemoryUse& use, int id) {
  return use.nodes[static_cast<std::size_t>(id)];
}

// A node holds blocks of one group only: its own, or one that spans several nodes.
bool groups_allow(const MemoryUse& use, NumaMask mask) {
  bool allowed = true;
  if (width(mask) == 1) {
    for_each_node(mask, [&](int id) { allowed = width(of_node(use, id).group) <= 1; });
    return allowed;
  }
  for_each_node(mask, [&](int id) {
    const NumaMemory& memory = of_node(use, id);
    if (memory.assignments > 0 && (width(memory.group) == 1 || memory.group != mask)) allowed = false;
  });
  return allowed;
}

struct Sums {
  Bytes allocatable = 0;
  Bytes free = 0;
};

Sums sums_of(const MemoryUse& use, NumaMask mask, std::size_t type) {
  Sums sums;
  for_each_node(mask, [&](int id) {
    sums.allocatable += of_node(use, id).allocatable[type];
    sums.free += of_node(use, id).free[type];
  });
  return sums;
}

// The masks that can hold all asked types; every type gets the same ones.
HintList calculate(const NodeState& node, const MemoryUse& use, const std::vector<MemoryAsk>& asks) {
  int fewest = width(node.nodes.all);
  HintList hints;
  if (asks.empty()) return hints;
  for_each_submask(node.nodes.all, [&](NumaMask mask) {
    bool fits = true;
    for (const MemoryAsk& ask : asks) {
      const Sums sums = sums_of(use, mask, ask.type);
      if (sums.allocatable < ask.size) return;
      fits = fits && sums.free + use.reusable_on(mask, ask.type) >= ask.size;
    }
    fewest = std::min(fewest, width(mask));
    if (fits && groups_allow(use, mask)) hints.push_back({mask, false});
  });
  for (Hint& hint : hints) hint.preferred = width(hint.mask) == fewest;
  return hints;
}

std::vector<HintList> one_per_ask(const HintList& hints, std::size_t asks) {
  if (hints.empty()) return {};
  return std::vector<HintList>(asks, hints);
}

// Blocks from a checkpoint give their own masks, if they are just what is asked for; else no opinion.
std::vector<HintList> regenerate(const std::vector<MemoryBlock>& blocks, const std::vector<MemoryAsk>& asks) {
  if (blocks.size() != asks.size()) return {};
  std::vector<HintList> lists;
  for (const MemoryBlock& block : blocks) {
    const auto same = [&](const MemoryAsk& ask) { return ask.type == block.type && ask.size == block.size; };
    if (std::none_of(asks.begin(), asks.end(), same)) return {};
    lists.push_back({{block.numa, true}});
  }
  return lists;
}

std::optional<Hint> best_of(const HintList& hints, NumaMask must_contain) {
  std::optional<Hint> best;
  for (const Hint& hint : hints) {
    if ((must_contain & ~hint.mask) != 0) continue;
    const bool better = !best || (hint.preferred != best->preferred ? hint.preferred : narrower(hint.mask, best->mask));
    if (better) best = hint;
  }
  return best;
}

bool satisfies(const MemoryUse& use, NumaMask mask, const std::vector<MemoryAsk>& asks) {
  return std::all_of(asks.begin(), asks.end(),
                     [&](const MemoryAsk& ask) { return sums_of(use, mask, ask.type).free >= ask.size; });
}

bool violates_groups(const MemoryUse& use, NumaMask mask) {
  return width(mask) > 1 && !groups_allow(use, mask);
}

void keep_for_reuse(MemoryUse& use, const ContainerAsk& container, NumaMask mask, const MemoryAsk& ask) {
  const auto entry = std::find_if(use.reusable.begin(), use.reusable.end(),
                                  [mask](const auto& reusable) { return reusable.first == mask; });
  if (container.role == ContainerRole::kInit) {
    MemoryAmounts& amounts =
        entry != use.reusable.end() ? entry->second : use.reusable.emplace_back(mask, MemoryAmounts{}).second;
    amounts[ask.type] = std::max(amounts[ask.type], ask.size);
  } else if (entry != use.reusable.end()) {
    entry->second[ask.type] -= std::min(entry->second[ask.type], ask.size);
  }
}

// The affinity that memory really gets: the Topology Manager's, widened where it cannot hold the memory.
Refusal settle(const NodeState& node, const MemoryUse& use, const ContainerAsk& container, const Hint& affinity,
               Hint& settled) {
  settled = affinity;
  const auto replace = [&](std::string_view kind, std::string_view none) -> Refusal {
    const std::optional<Hint> found = best_of(calculate(node, use, container.memory), settled.mask);
    if (!found) return unexpected("[memorymanager] " + std::string(none));
    if (!found->preferred && settled.preferred) {
      return unexpected("[memorymanager] failed to find the " + std::string(kind) + " preferred hint");
    }
    settled = *found;
    return {};
  };
  if (settled.mask == kAnyNuma) {
    Refusal refusal =
        replace("default", "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
    if (refusal.refused()) return refusal;
  }
  if (!satisfies(use, settled.mask, container.memory)) {
    Refusal refusal = replace("extended", "failed to find NUMA nodes to extend the current topology hint");
    if (refusal.refused()) return refusal;
  }
  if (violates_groups(use, settled.mask)) {
    return unexpected("[memorymanager] preferred hint violates NUMA node allocation");
  }
  return {};
}

}  // namespace

void take_memory(std::vector<NumaMemory>& memory, const MemoryBlock& block) {
  Bytes missing = block.size;
  for_each_node(block.numa, [&](int id) {
    NumaMemory& node = memory[static_cast<std::size_t>(id)];
    ++node.assignments;
    node.group = block.numa;
    const Bytes taken = std::min(missing, node.free[block.type]);
    node.free[block.type] -= taken;
    missing -= taken;
  });
}

Bytes MemoryUse::reusable_on(NumaMask mask, std::size_t type) const {
  for (const auto& [nodes_of_block, amounts] : reusable) {
    if (nodes_of_block == mask) return amounts[type];
  }
  return 0;
}

bool memory_is_pinned(const KubeletConfig& config, const PodAsk& pod) {
  return config.memory_static && pod.qos == QosClass::kGuaranteed && !pod.pod_level_resources;
}

std::vector<MemoryAsk> memory_of_pod(const PodAsk& pod) {
  std::vector<MemoryAsk> totals;
  for (std::size_t type = 0; type < kMaxMemoryTypes; ++type) {
    const auto find = [type](const ContainerAsk& container) {
      return std::find_if(container.memory.begin(), container.memory.end(),
                          [type](const MemoryAsk& ask) { return ask.type == type; });
    };
    const bool of_an_app = std::any_of(pod.containers.begin(), pod.containers.end(), [&](const ContainerAsk& c) {
      return c.role == ContainerRole::kApp && find(c) != c.memory.end();
    });
    if (!of_an_app) continue;
    totals.push_back({type, pod_total(pod, [&](const ContainerAsk& container) {
                        const auto ask = find(container);
                        return ask == container.memory.end() ? Bytes{0} : ask->size;
                      })});
  }
  return totals;
}

std::vector<HintList> memory_hints(const NodeState& node, const MemoryUse& use, const ContainerAsk& container) {
  if (!container.assigned.memory.empty()) return regenerate(container.assigned.memory, container.memory);
  return one_per_ask(calculate(node, use, container.memory), container.memory.size());
}

std::vector<HintList> memory_hints(const NodeState& node, const MemoryUse& use, const PodAsk& pod) {
  const std::vector<MemoryAsk> asks = memory_of_pod(pod);
  // Kubelet compares the first container's blocks with the whole pod's sums.
  for (const ContainerAsk& container : pod.containers) {
    if (!container.assigned.memory.empty()) return regenerate(container.assigned.memory, asks);
  }
  return one_per_ask(calculate(node, use, asks), asks.size());
}

Refusal allocate_memory(const NodeState& node, MemoryUse& use, const ContainerAsk& container, const Hint& affinity,
                        NumaMask& pinned) {
  if (!container.assigned.memory.empty()) {
    for (const MemoryBlock& block : container.assigned.memory) {
      keep_for_reuse(use, container, block.numa, {block.type, block.size});
    }
    return {};
  }
  Hint settled;
  if (Refusal refusal = settle(node, use, container, affinity, settled); refusal.refused()) return refusal;
  for (const MemoryAsk& ask : container.memory) {
    const Bytes reused = std::min(ask.size, use.reusable_on(settled.mask, ask.type));
    take_memory(use.nodes, {settled.mask, ask.type, ask.size - reused});
  }
  for (const MemoryAsk& ask : container.memory) keep_for_reuse(use, container, settled.mask, ask);
  pinned = settled.mask;
  return {};
}

}  // namespace mortise::topology
