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

/// What the pods that are still there hold, and what all counted ones held, those that have left since among them.
using Partial = std::pair<Hold, Hold>;

/// With departed pods there are more of them on the way than states in the end.
constexpr std::size_t kMaxPartials = 4096;

bool within(const NodeTopology& node, GpuMask gpus, GpuMask count) {
  return std::all_of(node.numa_classes().begin(), node.numa_classes().end(),
                     [&](GpuMask alike) { return std::popcount(gpus & alike) <= std::popcount(count & alike); });
}

bool add_counted(const NodeTopology& node, bool by_numa, const Hold& hold, const HeldPod& pod, GpuMask count,
                 Partial& partial) {
  if (!add(node, by_numa, hold, pod.share, partial.second) || !within(node, partial.second.gpus, count)) return false;
  return pod.gone || add(node, by_numa, hold, pod.share, partial.first);
}

enum class Found { kStates, kNone, kTooMany };

/// Adds those pods that are, or are not, counted.
Found add_pods(const NodeTopology& node, std::span<const HeldPod> pods, bool counted, bool by_numa, GpuMask count,
               std::set<Partial>& partials) {
  for (const HeldPod& pod : pods) {
    if (pod.counted != counted) continue;
    const Holds summed = by_numa ? by_numa_class(node, *pod.holds) : Holds{};
    const std::vector<Hold>& options = by_numa ? summed.options : pod.holds->options;
    std::set<Partial> next;
    for (const Partial& partial : partials) {
      for (const Hold& option : options) {
        Partial sum = partial;
        const bool added = counted ? add_counted(node, by_numa, option, pod, count, sum)
                                   : add(node, by_numa, option, pod.share, sum.first);
        if (added) next.insert(std::move(sum));
        if (next.size() > (counted ? kMaxPartials : kMaxStates)) return Found::kTooMany;
      }
    }
    partials = std::move(next);
  }
  return Found::kStates;
}

Found combine_at(const NodeTopology& node, std::span<const HeldPod> pods, bool by_numa, GpuMask count, Belief& belief) {
  std::set<Partial> partials = {Partial{}};
  if (std::any_of(pods.begin(), pods.end(), [](const HeldPod& pod) { return pod.counted; })) {
    if (add_pods(node, pods, true, by_numa, count, partials) == Found::kTooMany) return Found::kTooMany;
    std::set<Partial> seen;
    for (const Partial& partial : partials) {
      if (by_numa_class(node, partial.second.gpus) == count) seen.insert({partial.first, {}});
    }
    if (seen.size() > kMaxStates) return Found::kTooMany;
    partials = std::move(seen);
  }
  if (add_pods(node, pods, false, by_numa, count, partials) == Found::kTooMany) return Found::kTooMany;
  belief.by_numa = by_numa;
  belief.states.clear();
  for (const Partial& partial : partials) belief.states.push_back(partial.first);
  return partials.empty() ? Found::kNone : Found::kStates;
}

/// One by one, and if they are too many or too vague by count.
Found combine_somehow(const NodeTopology& node, std::span<const HeldPod> pods, GpuMask count, Belief& belief) {
  const bool complete = std::all_of(pods.begin(), pods.end(), [](const HeldPod& p) { return p.holds->complete; });
  const bool by_numa = std::any_of(pods.begin(), pods.end(), [](const HeldPod& p) { return p.holds->by_numa; });
  // Two shares may be on one GPU or on two: counts do not tell.
  const bool shares = std::any_of(pods.begin(), pods.end(), [](const HeldPod& p) { return p.share; });
  if (!complete) return Found::kTooMany;
  const Found one_by_one = by_numa ? Found::kTooMany : combine_at(node, pods, false, count, belief);
  if (one_by_one != Found::kTooMany || shares) return one_by_one;
  return combine_at(node, pods, true, count, belief);
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

Belief combine(const NodeTopology& node, std::span<const HeldPod> pods, GpuMask count) {
  Belief belief;
  if (combine_somehow(node, pods, count, belief) == Found::kStates) return belief;
  return {{}, false, false};
}

bool contradictory(const NodeTopology& node, std::span<const HeldPod> pods, GpuMask count) {
  Belief belief;
  return combine_somehow(node, pods, count, belief) == Found::kNone;
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
