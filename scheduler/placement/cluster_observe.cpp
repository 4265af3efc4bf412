#include <algorithm>
#include <bit>
#include <cassert>
#include <string>
#include <utility>

#include "scheduler/placement/cluster_state.h"

namespace mortise::placement {
namespace {

/// The counts by NUMA node as by_numa_class has them.
Result<GpuMask> count_mask(const NodeTopology& node, std::map<int, int> gpus_held) {
  GpuMask gpus = 0;
  for (GpuMask alike : node.numa_classes()) {
    const topology::NumaMask near = node.numa_of(std::countr_zero(alike));
    if (std::popcount(near) != 1) return Error{"not every GPU of the node is near just one NUMA node"};
    const auto found = gpus_held.find(std::countr_zero(near));
    if (found == gpus_held.end()) continue;
    if (found->second < 0 || found->second > std::popcount(alike)) {
      return Error{"NUMA node " + std::to_string(found->first) + " has " + std::to_string(std::popcount(alike)) +
                   " GPUs, not " + std::to_string(found->second)};
    }
    for (int held = found->second; held > 0; --held, alike &= alike - 1) gpus |= alike & (~alike + 1);
    gpus_held.erase(found);
  }
  for (const auto& [numa, held] : gpus_held) {
    if (held != 0) return Error{"NUMA node " + std::to_string(numa) + " has no GPUs"};
  }
  return gpus;
}

}  // namespace

Status ClusterState::foreseen_on(NodeId id) const {
  const NodeTopology* node = topology_of(machine_of(id));
  if (node == nullptr) return Error{"the inside of the node is not known"};
  if (node->enforced()) return Error{"the GPUs of the node are chosen here"};
  const std::vector<NodeInsides::HeldHere> held = held_on(nodes_[id.index()]);
  if (std::any_of(held.begin(), held.end(), [](const NodeInsides::HeldHere& pod) { return pod.foreign; })) {
    return Error{"something else than kubelet hands out GPUs of the node, too"};
  }
  return ok_status();
}

Result<Observed> ClusterState::observe_devices(AllocationId id, const DeviceSet& devices) {
  assert(open_marks_ == 0);
  if (allocation(id) == nullptr) return Error{"no such allocation"};
  Allocation& mine = *allocations_[id.index()];
  if (const Status foreseen = foreseen_on(mine.node); !foreseen) return foreseen.error();
  const Machine& on = machine_of(mine.node);
  const PodShape& shape = shapes_.shape(mine.shape);
  const GpuMask seen = gpu_mask(devices);
  if (devices.size() != shape.gpus || shape.gpus == 0) {
    return Error{"the pod holds " + std::to_string(shape.gpus) + " GPUs, not " + std::to_string(devices.size())};
  }
  if (std::popcount(seen) != devices.size() || (seen & ~topology_of(on)->all_gpus()) != 0) {
    return Error{"the node has no such GPU"};
  }
  if (mine.knowledge == Knowledge::kExact && mine.devices == devices) return Observed::kNothingNew;
  const auto left = insides_.seen_with(on, shape, mine.holds, gpu_mask(mine.devices), seen);
  mine.holds = left ? *left : insides_.holds_found(on, shape, devices, Knowledge::kExact);
  mine.knowledge = Knowledge::kExact;
  const GpuMask before = gpu_mask(std::exchange(mine.devices, devices));
  return settle_observed(mine.node, !left, id, before);
}

Result<Observed> ClusterState::observe_count(NodeId id, const std::map<int, int>& gpus_held,
                                             std::span<const AllocationId> pods) {
  assert(open_marks_ == 0);
  if (const Status foreseen = foreseen_on(id); !foreseen) return foreseen.error();
  const Machine& on = machine_of(id);
  const Result<GpuMask> gpus = count_mask(*topology_of(on), gpus_held);
  if (!gpus) return gpus.error();
  NodeEntry& node = nodes_[id.index()];
  const auto is_meant = [&](AllocationId pod) { return std::find(pods.begin(), pods.end(), pod) != pods.end(); };
  int held = 0;
  bool counted_before = node.count.gone.empty() && node.count.gpus == *gpus;
  for (const AllocationId pod : node.pods) {
    const Allocation& allocation = *allocations_[pod.index()];
    if (is_meant(pod)) held += allocation.devices.size();
    counted_before = counted_before && (allocation.devices.empty() || is_meant(pod) == allocation.counted);
  }
  if (held != std::popcount(*gpus)) {
    return Error{"the pods hold " + std::to_string(held) + " GPUs, not " + std::to_string(std::popcount(*gpus))};
  }
  if (held == 0 || counted_before) return Observed::kNothingNew;
  // The count before this one goes, and what it told of each pod stays.
  const std::vector<NodeInsides::HeldHere> then = held_on(node);
  for (std::size_t i = 0; i < node.pods.size(); ++i) {
    Allocation& allocation = *allocations_[node.pods[i].index()];
    if (allocation.counted) allocation.holds = insides_.narrowed(on.topology, then, i, node.count);
    allocation.counted = !allocation.devices.empty() && is_meant(node.pods[i]);
  }
  node.count = {*gpus, {}};
  return settle_observed(id, false, std::nullopt, 0);
}

/// What is seen is in the books. `seen`: the pod whose devices were seen, which had `before` on record; none: a count.
Observed ClusterState::settle_observed(NodeId id, bool mismatch, std::optional<AllocationId> seen, GpuMask before) {
  NodeEntry& node = nodes_[id.index()];
  const Machine& on = machine_of(id);
  const auto contradictory = [&] { return insides_.contradictory(on.topology, held_on(node), node.count); };
  const auto forget = [&](Allocation& held) {
    held.knowledge = Knowledge::kUnknown;
    held.holds = insides_.holds_found(on, shapes_.shape(held.shape), held.devices, held.knowledge);
  };
  const auto forget_all = [&](bool exact_ones) {
    for (const AllocationId pod : node.pods) {
      Allocation& held = *allocations_[pod.index()];
      if (pod != seen && (exact_ones || held.knowledge != Knowledge::kExact)) forget(held);
    }
  };
  const GpuMask taken = seen ? gpu_mask(allocations_[seen->index()]->devices) : 0;
  for (const AllocationId pod : node.pods) {
    Allocation& held = *allocations_[pod.index()];
    const bool only_these = held.knowledge == Knowledge::kExact || held.holds == HoldsId{};
    if (pod == seen || !only_these || (gpu_mask(held.devices) & taken) == 0) continue;
    forget(held);
    mismatch = true;
  }
  mismatch = mismatch || contradictory();
  if (mismatch) {
    // What was foreseen of the others followed from something that was not so; what was seen of them did not.
    forget_all(false);
    if (seen && contradictory()) {
      for (const AllocationId pod : node.pods) allocations_[pod.index()]->counted = false;
      node.count = {};
    }
    if (contradictory()) forget_all(true);
  }
  if (seen) move_records(id, *seen, before);
  restate(id);
  return mismatch ? Observed::kMismatch : Observed::kConsistent;
}

/// Other pods that have the devices of `seen` on record get those it had before, or free ones.
void ClusterState::move_records(NodeId id, AllocationId seen, GpuMask before) {
  const GpuMask taken = gpu_mask(allocations_[seen.index()]->devices);
  GpuMask spare = (topology_of(machine_of(id))->all_gpus() & ~held_gpus(state_of(id))) | before;
  spare &= ~taken;
  for (const AllocationId pod : nodes_[id.index()].pods) {
    Allocation& held = *allocations_[pod.index()];
    const GpuMask record = gpu_mask(held.devices);
    if (pod == seen || (record & taken) == 0) continue;
    GpuMask now = record & ~taken;
    for (int lost = std::popcount(record & taken); lost > 0 && spare != 0; --lost, spare &= spare - 1) {
      now |= spare & (~spare + 1);
    }
    held.devices = device_set(now);
  }
}

/// Makes the node's state follow from its pods again after what they hold has changed.
void ClusterState::restate(NodeId id) {
  const NodeEntry& node = nodes_[id.index()];
  const NodeState before = state_of(id);
  const Machine& on = machine(before.machine);
  NodeState after = empty_state(before.machine);
  for (const AllocationId pod : node.pods) {
    const Allocation& held = *allocations_[pod.index()];
    const PodShape& shape = shapes_.shape(held.shape);
    after.kinds |= gpu_pod_kind(shape.gpus, shape.gpu_milli);
    charge(shape, held.devices, -1, after);
  }
  after.belief = insides_.believe(on.topology, held_on(node), node.count);
  totals_.whole_free_gpus += usable_free(on, after) - usable_free(on, before);
  totals_.gpu_used += before.milli_free() - after.milli_free();
  states_.move_node(id, after);
  after_mutation();
}

}  // namespace mortise::placement
