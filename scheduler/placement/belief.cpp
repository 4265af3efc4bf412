#include "scheduler/placement/belief.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace mortise::placement {
namespace {

GpuMask lowest(GpuMask mask, int count) {
  GpuMask out = 0;
  for (; count > 0 && mask != 0; --count) {
    const GpuMask first = mask & (~mask + 1);
    out |= first;
    mask ^= first;
  }
  return out;
}

/// Adds a pod's hold to a state; false when something would be held twice.
bool add(const NodeTopology& node, bool by_numa, const Hold& hold, bool share, Hold& state) {
  if (!(hold.cpus & state.cpus).empty()) return false;
  if (!by_numa) {
    if (!share && (hold.gpus & state.gpus) != 0) return false;
    state.gpus |= hold.gpus;
  } else {
    GpuMask sum = 0;
    for (const GpuMask alike : node.numa_classes()) {
      const int before = std::popcount(state.gpus & alike);
      const int after = before + std::popcount(hold.gpus & alike);
      if (after > std::popcount(alike)) return false;
      sum |= lowest(alike, after);
    }
    state.gpus = sum;
  }
  state.cpus |= hold.cpus;
  state.memory.insert(state.memory.end(), hold.memory.begin(), hold.memory.end());
  std::sort(state.memory.begin(), state.memory.end());
  return true;
}

/// False when there are too many.
bool combine_at(const NodeTopology& node, std::span<const HeldPod> pods, bool by_numa, Belief& belief) {
  std::set<Hold> states = {Hold{}};
  for (const HeldPod& pod : pods) {
    const Holds summed = by_numa ? by_numa_class(node, *pod.holds) : Holds{};
    const std::vector<Hold>& options = by_numa ? summed.options : pod.holds->options;
    std::set<Hold> next;
    for (const Hold& state : states) {
      for (const Hold& option : options) {
        Hold sum = state;
        if (add(node, by_numa, option, pod.share, sum)) next.insert(std::move(sum));
        if (next.size() > kMaxStates) return false;
      }
    }
    states = std::move(next);
  }
  belief.by_numa = by_numa;
  belief.states.assign(states.begin(), states.end());
  return !belief.states.empty();
}

}  // namespace

GpuMask by_numa_class(const NodeTopology& node, GpuMask gpus) {
  GpuMask out = 0;
  for (const GpuMask alike : node.numa_classes()) out |= lowest(alike, std::popcount(gpus & alike));
  return out;
}

Holds by_numa_class(const NodeTopology& node, const Holds& holds) {
  if (holds.by_numa || !holds.complete) return holds;
  std::set<Hold> options;
  for (Hold hold : holds.options) {
    hold.gpus = by_numa_class(node, hold.gpus);
    options.insert(std::move(hold));
  }
  return {{options.begin(), options.end()}, true, true};
}

Belief combine(const NodeTopology& node, std::span<const HeldPod> pods) {
  Belief belief;
  const bool complete = std::all_of(pods.begin(), pods.end(), [](const HeldPod& p) { return p.holds->complete; });
  const bool by_numa = std::any_of(pods.begin(), pods.end(), [](const HeldPod& p) { return p.holds->by_numa; });
  if (complete && !by_numa && combine_at(node, pods, false, belief)) return belief;
  // Two shares may be on one GPU or on two: counts do not tell.
  const bool shares = std::any_of(pods.begin(), pods.end(), [](const HeldPod& p) { return p.share; });
  if (complete && !shares && combine_at(node, pods, true, belief)) return belief;
  return {{}, false, false};
}

BeliefTable::BeliefTable() : holds_{nullptr}, beliefs_{nullptr} {}

HoldsId BeliefTable::intern(const Holds& holds) {
  const auto [entry, added] = holds_ids_.try_emplace(holds, HoldsId{static_cast<std::uint32_t>(holds_.size())});
  if (added) holds_.push_back(&entry->first);
  return entry->second;
}

BeliefId BeliefTable::intern(const Belief& belief) {
  const auto [entry, added] = belief_ids_.try_emplace(belief, BeliefId{static_cast<std::uint32_t>(beliefs_.size())});
  if (added) beliefs_.push_back(&entry->first);
  return entry->second;
}

}  // namespace mortise::placement
