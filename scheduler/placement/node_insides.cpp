#include "scheduler/placement/node_insides.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <set>

#include "scheduler/topology/cpu_static.h"

namespace mortise::placement {
namespace {

using topology::GpuSet;
using topology::Objective;

constexpr std::size_t kMaxRemembered = 1 << 16;

GpuMask first_free(GpuMask free, int count) {
  GpuMask out = 0;
  for (; count > 0 && free != 0; --count, free &= free - 1) out |= free & (~free + 1);
  return out;
}

/// Dedicated CPUs or pinned memory for at least one container.
bool pins(const NodeTopology& node, const PodAlignment& alignment) {
  const topology::PodAsk& ask = alignment.ask;
  if (node.kubelet().memory_static && ask.qos == topology::QosClass::kGuaranteed) return true;
  return std::any_of(ask.containers.begin(), ask.containers.end(), [&](const topology::ContainerAsk& container) {
    return topology::exclusive_cpus(node.kubelet(), ask, container) > 0;
  });
}

bool is_plain(const Holds& holds, GpuMask gpus) {
  return holds.complete && !holds.by_numa && holds.options.size() == 1 && holds.options.front() == Hold{gpus, {}, {}};
}

/// Of the sets a pod may get where we choose, the one with the best value.
GpuMask best_option(const NodeTopology& node, const Holds& holds, Objective objective) {
  const auto merit = [&](GpuMask gpus) {
    const topology::SetValue value = node.sets()->value(static_cast<GpuSet>(gpus));
    switch (objective) {
      case Objective::kRing:
        return std::tuple(value.ring, value.total);
      case Objective::kTotal:
        return std::tuple(value.total, value.bottleneck);
      case Objective::kBottleneck:
      case Objective::kNvidia:
        break;
    }
    return std::tuple(value.bottleneck, value.total);
  };
  GpuMask best = holds.options.front().gpus;
  for (const Hold& option : holds.options) {
    if (merit(option.gpus) > merit(best)) best = option.gpus;
  }
  return best;
}

}  // namespace

DeviceSet device_set(GpuMask gpus) {
  DeviceSet devices;
  for (; gpus != 0; gpus &= gpus - 1) devices.insert(std::countr_zero(gpus));
  return devices;
}

GpuMask gpu_mask(const DeviceSet& devices) {
  GpuMask gpus = 0;
  devices.for_each([&](int device) {
    if (device < topology::kMaxGpus) gpus |= GpuMask{1} << device;
  });
  return gpus;
}

GpuMask held_gpus(const NodeState& state) {
  GpuMask held = 0;
  for (std::size_t d = 0; d < std::min<std::size_t>(state.devices, topology::kMaxGpus); ++d) {
    if (state.free[d] != kWholeGpu) held |= GpuMask{1} << d;
  }
  return held;
}

TopologyId NodeInsides::intern(const std::shared_ptr<const NodeTopology>& topology) {
  const auto known = std::find(topologies_.begin(), topologies_.end(), topology);
  const TopologyId id{static_cast<std::uint32_t>(known - topologies_.begin())};
  if (known == topologies_.end()) topologies_.push_back(topology);
  return id;
}

AlignmentId NodeInsides::intern(const PodRequest& pod) {
  const bool asks = pod.topology_policy != topology::TopologyPolicy::kNone || pod.nvlink == NvlinkWish::kRequired;
  if (topologies_.size() == 1 && !asks && !expects_topologies_) return {};
  return alignments_.intern(pod);
}

const Prediction& NodeInsides::predict(TopologyId id, const NodeState& state, AlignmentId alignment) {
  return predictor_.predict(id, *topology(id), state.belief, belief(state.belief), held_gpus(state), alignment,
                            alignments_.at(alignment));
}

Reason NodeInsides::reason(const Machine& machine, const NodeState& state, const PodShape& pod) {
  if (pod.alignment == AlignmentId{}) return Reason::kNone;
  const PodAlignment& alignment = alignments_.at(pod.alignment);
  const NodeTopology* node = topology(machine.topology);
  if (node == nullptr) return alignment.wants_guarantee() ? Reason::kTopologyUnknown : Reason::kNone;
  if (!node->managed() && !alignment.wants_guarantee() && (alignment.gpus < 1 || !node->plugin_known())) {
    return Reason::kNone;
  }
  const Reason reason = predict(machine.topology, state, pod.alignment).reason;
  if (reason == Reason::kNone || reason == Reason::kTopologyState) return reason;
  const Prediction& empty = predictor_.predict(machine.topology, *node, {}, nullptr, 0, pod.alignment, alignment);
  return empty.reason == Reason::kNone ? reason : Reason::kTopologyNever;
}

/// A state of the node in which the devices on record are the ones that are held.
Hold NodeInsides::representative(const NodeTopology& node, const NodeState& state) const {
  Hold now{held_gpus(state), {}, {}};
  const Belief* known = belief(state.belief);
  if (known == nullptr || !known->complete) return now;
  const GpuMask wanted = known->by_numa ? by_numa_class(node, now.gpus) : now.gpus;
  for (const Hold& one : known->states) {
    if (one.gpus != wanted) continue;
    now.cpus = one.cpus;
    now.memory = one.memory;
    break;
  }
  return now;
}

DeviceSet NodeInsides::choose(const Machine& machine, const NodeState& state, const PodShape& pod,
                              std::optional<Objective> objective) {
  const NodeTopology* node = topology(machine.topology);
  if (node == nullptr) {
    DeviceSet devices;
    for (int device = 0, left = pod.gpus; left > 0; ++device) {
      if (state.free[static_cast<std::size_t>(device)] != kWholeGpu) continue;
      devices.insert(device);
      --left;
    }
    return devices;
  }
  const GpuMask free = node->all_gpus() & ~held_gpus(state);
  const GpuMask fallback = first_free(free, pod.gpus);
  if (pod.gpus == 0 || pod.alignment == AlignmentId{} || is_foreign(pod)) return device_set(fallback);
  const PodAlignment& alignment = alignments_.at(pod.alignment);
  const bool plain = !node->managed() && !alignment.wants_guarantee() && alignment.ask.containers.size() == 1;
  GpuMask wished = fallback;
  if (!node->enforced() && node->plugin_known()) {
    wished = node->sets()->plugin().pick(static_cast<GpuSet>(free), pod.gpus).set;
  } else if (node->enforced() && objective && node->sets() != nullptr) {
    wished = node->sets()->best(*objective, static_cast<GpuSet>(free), pod.gpus);
  }
  if (plain) return device_set(wished != 0 ? wished : fallback);
  const Prediction in_state =
      predictor_.predict_in(machine.topology, *node, representative(*node, state), false, alignment);
  const std::vector<Hold>& options = in_state.holds.options;
  const auto is_option = [&](GpuMask gpus) {
    return std::any_of(options.begin(), options.end(), [&](const Hold& option) { return option.gpus == gpus; });
  };
  if (options.empty() || is_option(wished)) return device_set(wished != 0 ? wished : fallback);
  if (node->enforced() && objective && node->sets() != nullptr) {
    return device_set(best_option(*node, in_state.holds, *objective));
  }
  return device_set(options.front().gpus);
}

/// Any GPUs of the node; what is pinned is not known at all.
Holds NodeInsides::unknown_devices(const NodeTopology& node, const PodAlignment& alignment) const {
  if (pins(node, alignment)) return {{}, false, false};
  std::set<Hold> options;
  const int count = alignment.gpus;
  // Counts per NUMA class: a class takes from 0 to all that is left to take.
  std::vector<GpuMask> partial = {0};
  for (const GpuMask alike : node.numa_classes()) {
    std::vector<GpuMask> next;
    for (const GpuMask so_far : partial) {
      for (int mine = 0; mine <= std::popcount(alike) && mine + std::popcount(so_far) <= count; ++mine) {
        next.push_back(so_far | first_free(alike, mine));
      }
    }
    partial = std::move(next);
    if (partial.size() > kMaxStates * kMaxStates) return {{}, false, false};
  }
  for (const GpuMask gpus : partial) {
    if (std::popcount(gpus) == count) options.insert({gpus, {}, {}});
  }
  if (options.size() > kMaxStates) return {{}, false, false};
  return {{options.begin(), options.end()}, true, true};
}

HoldsId NodeInsides::holds(const Machine& machine, const NodeState& state, const PodShape& pod,
                           const DeviceSet& devices, Knowledge knowledge) {
  const NodeTopology* node = topology(machine.topology);
  if (node == nullptr || pod.alignment == AlignmentId{} || is_foreign(pod)) return {};
  const PodAlignment& alignment = alignments_.at(pod.alignment);
  const GpuMask gpus = gpu_mask(devices);
  if (knowledge == Knowledge::kUnknown || (knowledge == Knowledge::kAssigned && !node->enforced())) {
    return holds_found(machine, pod, devices, Knowledge::kUnknown);
  }
  const bool exact = knowledge == Knowledge::kExact || node->enforced();
  if (exact && !pins(*node, alignment)) return {};
  Holds may = predict(machine.topology, state, pod.alignment).holds;
  if (exact) {
    std::erase_if(may.options,
                  [&](const Hold& hold) { return hold.gpus != (may.by_numa ? by_numa_class(*node, gpus) : gpus); });
    for (Hold& hold : may.options) hold.gpus = gpus;
    may.by_numa = false;
    // Kubelet did what was not foreseen: which CPUs and memory it took is open.
    may.complete = may.complete && !may.options.empty();
  }
  // More or fewer devices than the pod is counted with would not be on record.
  const bool counted = std::all_of(may.options.begin(), may.options.end(),
                                   [&](const Hold& hold) { return std::popcount(hold.gpus) == alignment.gpus; });
  if (!may.complete || !counted) may = {{}, false, false};
  if (is_plain(may, gpus)) return {};
  return beliefs_.intern(may);
}

HoldsId NodeInsides::holds_found(const Machine& machine, const PodShape& pod, const DeviceSet& devices,
                                 Knowledge knowledge) {
  const NodeTopology* node = topology(machine.topology);
  if (node == nullptr || pod.alignment == AlignmentId{} || is_foreign(pod)) return {};
  const PodAlignment& alignment = alignments_.at(pod.alignment);
  const bool exact = knowledge == Knowledge::kExact || (node->enforced() && knowledge != Knowledge::kUnknown);
  if ((exact || devices.empty()) && !pins(*node, alignment)) return {};
  return beliefs_.intern(unknown_devices(*node, alignment));
}

std::optional<HoldsId> NodeInsides::seen_with(const Machine& machine, const PodShape& pod, HoldsId before,
                                              GpuMask record, GpuMask seen) {
  const NodeTopology& node = *topology(machine.topology);
  Holds may = holds_of({before, record});
  if (!may.complete) return holds_found(machine, pod, device_set(seen), Knowledge::kExact);
  std::erase_if(may.options,
                [&](const Hold& hold) { return hold.gpus != (may.by_numa ? by_numa_class(node, seen) : seen); });
  if (may.options.empty()) return std::nullopt;
  for (Hold& hold : may.options) hold.gpus = seen;
  may.by_numa = false;
  return is_plain(may, seen) ? HoldsId{} : beliefs_.intern(may);
}

bool NodeInsides::is_foreign(const PodShape& pod) const {
  return pod.is_share() || (pod.gpus > 0 && alignments_.at(pod.alignment).gpus == 0);
}

/// Nothing but the devices on record, where there is no list.
Holds NodeInsides::holds_of(const HeldHere& pod) const {
  return pod.holds == HoldsId{} ? Holds{{Hold{pod.gpus, {}, {}}}, false, true} : beliefs_.holds(pod.holds);
}

/// `lists` keeps what they point to.
std::vector<HeldPod> NodeInsides::pods_of(const std::vector<HeldHere>& pods, const Count& count,
                                          std::deque<Holds>& lists) const {
  std::vector<HeldPod> held;
  const auto add = [&](const HeldHere& pod, bool gone) {
    const Holds* holds = pod.holds == HoldsId{} ? &lists.emplace_back(holds_of(pod)) : &beliefs_.holds(pod.holds);
    held.push_back({holds, pod.foreign, pod.counted, gone});
  };
  for (const HeldHere& pod : pods) add(pod, false);
  // A count of pods that have all left tells nothing of the others.
  const bool counts = std::any_of(pods.begin(), pods.end(), [](const HeldHere& pod) { return pod.counted; });
  for (const HeldHere& pod : counts ? count.gone : std::vector<HeldHere>()) add(pod, true);
  return held;
}

BeliefId NodeInsides::believe(TopologyId id, std::vector<HeldHere> pods, const Count& count) {
  const bool ours = topology(id)->enforced();
  if (std::all_of(pods.begin(), pods.end(),
                  [&](const HeldHere& pod) { return pod.holds == HoldsId{} && (ours || !pod.foreign); })) {
    return {};
  }
  // Kubelet may hand out the GPUs of foreign pods once more: what it will do with the others follows from nothing here.
  if (!ours && std::any_of(pods.begin(), pods.end(), [](const HeldHere& pod) { return pod.foreign; })) {
    return beliefs_.intern(Belief{{}, false, false});
  }
  std::sort(pods.begin(), pods.end());
  const bool counts = std::any_of(pods.begin(), pods.end(), [](const HeldHere& pod) { return pod.counted; });
  Count known = counts ? count : Count{};
  std::sort(known.gone.begin(), known.gone.end());
  if (known_beliefs_.size() >= kMaxRemembered) known_beliefs_.clear();
  const auto [entry, added] = known_beliefs_.try_emplace({id, std::move(pods), std::move(known)}, BeliefId{});
  if (!added) return entry->second;
  const auto& [topology_id, here, counted] = entry->first;
  std::deque<Holds> lists;
  entry->second = beliefs_.intern(combine(*topology(id), pods_of(here, counted, lists), counted.gpus));
  return entry->second;
}

bool NodeInsides::contradictory(TopologyId id, const std::vector<HeldHere>& pods, const Count& count) const {
  std::deque<Holds> lists;
  return placement::contradictory(*topology(id), pods_of(pods, count, lists), count.gpus);
}

HoldsId NodeInsides::narrowed(TopologyId id, const std::vector<HeldHere>& pods, std::size_t at, const Count& count) {
  Holds may = holds_of(pods[at]);
  if (!may.complete || may.options.size() < 2) return pods[at].holds;
  std::deque<Holds> lists;
  std::vector<HeldPod> held = pods_of(pods, count, lists);
  Holds one{{}, may.by_numa, true};
  held[at].holds = &one;
  std::erase_if(may.options, [&](const Hold& hold) {
    one.options = {hold};
    return placement::contradictory(*topology(id), held, count.gpus);
  });
  return may.options.empty() ? pods[at].holds : beliefs_.intern(may);
}

}  // namespace mortise::placement
