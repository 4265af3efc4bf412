#include "scheduler/placement/cluster_state.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace mortise::placement {

namespace {
constexpr std::size_t kCheckEveryUpTo = 64;  // nodes; larger clusters are checked every kCheckInterval mutations
constexpr std::uint64_t kCheckInterval = 1000;
#ifdef NDEBUG
constexpr bool kChecksItself = false;
#else
constexpr bool kChecksItself = true;
#endif
}  // namespace

Status ClusterState::check_spec(const NodeSpec& spec) const {
  if (spec.cpu < 0 || spec.memory < 0 || spec.pods < 0 || spec.gpus < 0 || spec.gpus > kMaxDevices) {
    return Error{"node '" + spec.name + "': amounts must be 0 or more, and GPUs at most " +
                 std::to_string(kMaxDevices)};
  }
  if (spec.gpus_lost < 0 || spec.gpus_lost > spec.gpus) {
    return Error{"node '" + spec.name + "': lost GPUs must be 0 to " + std::to_string(spec.gpus)};
  }
  if (spec.topology && spec.topology->gpus() != spec.gpus) {
    return Error{"node '" + spec.name + "': " + std::to_string(spec.gpus) + " GPUs, but a topology of " +
                 std::to_string(spec.topology->gpus())};
  }
  return ok_status();
}

Machine ClusterState::machine_from(const NodeSpec& spec) {
  // Which GPUs are lost is not known, so neither is what the others are joined by.
  const TopologyId topology = spec.gpus_lost > 0 ? TopologyId{} : insides_.intern(spec.topology);
  return {spec.cpu,         spec.memory,  spec.pods, spec.gpus,     intern_model(spec.model),
          spec.schedulable, spec.blocked, topology,  spec.gpus_lost};
}

NodeState ClusterState::empty_state(MachineId id) const {
  const Machine& m = machine(id);
  NodeState state;
  state.machine = id;
  state.pods_free = m.pods;
  state.cpu_free = m.cpu;
  state.memory_free = m.memory;
  state.devices = static_cast<std::uint8_t>(m.gpus);
  std::fill_n(state.free.begin(), m.gpus, static_cast<std::int16_t>(kWholeGpu));
  return state;
}

int ClusterState::usable_free(const Machine& machine, const NodeState& state) {
  return std::max(0, state.whole_free() - machine.gpus_lost);
}

void ClusterState::count_node(const Machine& machine, int sign) {
  totals_.nodes += sign;
  totals_.gpus += sign * (machine.gpus - machine.gpus_lost);
  totals_.gpu_capacity += sign * (machine.gpus - machine.gpus_lost) * kWholeGpu;
  totals_.cpu_capacity += sign * machine.cpu;
}

Result<NodeId> ClusterState::add_node(const NodeSpec& spec, std::uint64_t rank) {
  if (by_name_.contains(spec.name)) return Error{"duplicate node name '" + spec.name + "'"};
  if (const Status status = check_spec(spec); !status) return status.error();
  const MachineId machine_id = intern_machine(machine_from(spec));
  const NodeState state = empty_state(machine_id);
  NodeId id{static_cast<std::uint32_t>(nodes_.size())};
  if (free_nodes_.empty()) {
    nodes_.push_back({spec.name, {}, {}, {}, true});
    states_.add_node(rank, state);
  } else {
    id = free_nodes_.back();
    free_nodes_.pop_back();
    nodes_[id.index()] = {spec.name, {}, {}, {}, true};
    states_.return_node(id, rank, state);
  }
  by_name_.emplace(spec.name, id);
  count_node(machine(machine_id), +1);
  totals_.whole_free_gpus += usable_free(machine(machine_id), state);
  after_mutation();
  return id;
}

Status ClusterState::remove_node(NodeId id) {
  assert(open_marks_ == 0);
  const bool holds =
      std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& held) { return held && held->node == id; });
  if (holds) return Error{"node '" + node_name(id) + "' holds pods"};
  const NodeState& state = state_of(id);
  count_node(machine(state.machine), -1);
  totals_.whole_free_gpus -= usable_free(machine(state.machine), state);
  states_.remove_node(id);
  by_name_.erase(node_name(id));
  nodes_[id.index()] = {"", {}, {}, {}, false};
  free_nodes_.push_back(id);
  after_mutation();
  return ok_status();
}

Status ClusterState::update_node(NodeId id, const NodeSpec& spec) {
  assert(open_marks_ == 0);
  if (const Status status = check_spec(spec); !status) return status;
  Machine now = machine_from(spec);
  // Nodes report that they live every few minutes; the pods of all nodes are not walked for that.
  if (now == machine_of(id)) return ok_status();
  NodeEntry& node = nodes_[id.index()];
  std::vector<AllocationId> here;
  for (std::uint32_t i = 0; i < allocations_.size(); ++i) {
    const auto& held = allocations_[i];
    if (!held || held->node != id) continue;
    here.push_back({i});
    held->devices.for_each([&](int device) {
      if (device < now.gpus) return;
      // Held, and gone from the node: it stays in the books and is not given to anyone.
      now.gpus_lost += device + 1 - now.gpus;
      now.gpus = device + 1;
      now.topology = TopologyId{};
    });
  }
  const Machine before = machine_of(id);
  if (now == before) return ok_status();
  totals_.whole_free_gpus -= usable_free(before, state_of(id));
  count_node(before, -1);
  NodeState state = empty_state(intern_machine(now));
  const bool other_inside = now.topology != before.topology;
  if (other_inside) node.count = {};
  for (const AllocationId held_id : here) {
    Allocation& held = *allocations_[held_id.index()];
    const PodShape& shape = shapes_.shape(held.shape);
    if (other_inside) {
      // What it pins was foreseen for the node as it was.
      const bool pins = held.knowledge == Knowledge::kExact && held.holds != HoldsId{};
      held.holds = insides_.holds_found(now, shape, held.devices, pins ? Knowledge::kUnknown : held.knowledge);
      held.counted = false;
    }
    state.kinds |= gpu_pod_kind(shape.gpus, shape.gpu_milli);
    charge(shape, held.devices, -1, state);
  }
  node.pods = now.topology == TopologyId{} ? std::vector<AllocationId>() : std::move(here);
  if (now.topology != TopologyId{}) state.belief = insides_.believe(now.topology, held_on(node), node.count);
  count_node(now, +1);
  totals_.whole_free_gpus += usable_free(now, state);
  states_.move_node(id, state);
  after_mutation();
  return ok_status();
}

MachineId ClusterState::intern_machine(const Machine& machine) {
  const auto [entry, added] =
      machine_ids_.try_emplace(machine, MachineId{static_cast<std::uint32_t>(machines_.size())});
  if (added) machines_.push_back(machine);
  return entry->second;
}

ModelId ClusterState::intern_model(std::string_view name) {
  const auto found = std::find(models_.begin(), models_.end(), name);
  if (found != models_.end()) return {static_cast<std::uint32_t>(found - models_.begin())};
  models_.emplace_back(name);
  return {static_cast<std::uint32_t>(models_.size() - 1)};
}

ShapeId ClusterState::intern(const PodRequest& pod) {
  PodShape shape{pod.cpu, pod.memory, pod.gpus, pod.gpus > 0 ? pod.gpu_milli : 0, {}, insides_.intern(pod)};
  if (pod.gpus > 0) {
    for (const std::string& model : pod.models) shape.models.push_back(intern_model(model));
    std::sort(shape.models.begin(), shape.models.end());
  }
  return shapes_.intern(shape);
}

bool ClusterState::devices_free(const PodShape& shape, const NodeState& state, const DeviceSet& devices) const {
  bool free = true;
  devices.for_each([&](int device) {
    free = free && device < state.devices && state.free[static_cast<std::size_t>(device)] >= shape.gpu_milli;
  });
  return free;
}

Status ClusterState::fits(const PodShape& shape, const NodeState& state, const DeviceSet& devices) const {
  if (devices.size() != shape.gpus) return Error{"stale: the number of devices is not what the pod asks for"};
  if (!devices_free(shape, state, devices)) return Error{"stale: a device is taken"};
  if (state.cpu_free < shape.cpu) return Error{"stale: not enough free CPU"};
  if (state.memory_free < shape.memory) return Error{"stale: not enough free memory"};
  if (state.pods_free < 1) return Error{"stale: the node's pod limit is reached"};
  return ok_status();
}

void ClusterState::count_kind(NodeEntry& node, const PodShape& shape, int sign, NodeState& state) {
  const GpuPodKinds kind = gpu_pod_kind(shape.gpus, shape.gpu_milli);
  if (kind == 0) return;
  std::uint16_t& count = node.pods_of_kind[static_cast<std::size_t>(std::countr_zero(kind))];
  count = static_cast<std::uint16_t>(count - sign);
  state.kinds = count > 0 ? state.kinds | kind : state.kinds & ~kind;
}

NodeInsides::HeldHere ClusterState::held_here(const Allocation& allocation) const {
  const PodShape& shape = shapes_.shape(allocation.shape);
  return {allocation.holds, gpu_mask(allocation.devices), insides_.is_foreign(shape), allocation.counted};
}

std::vector<NodeInsides::HeldHere> ClusterState::held_on(const NodeEntry& node) const {
  std::vector<NodeInsides::HeldHere> held;
  held.reserve(node.pods.size());
  for (const AllocationId id : node.pods) held.push_back(held_here(*allocations_[id.index()]));
  return held;
}

/// Adds the pod to those of its node, or takes it out; one that was counted stays in the count when it leaves.
void ClusterState::list(NodeEntry& node, AllocationId id, const NodeInsides::HeldHere& held, int sign) {
  std::vector<NodeInsides::HeldHere>& gone = node.count.gone;
  if (sign < 0) {
    node.pods.push_back(id);
    if (held.counted) gone.erase(std::find(gone.begin(), gone.end(), held));
  } else {
    const auto found = std::find(node.pods.begin(), node.pods.end(), id);
    assert(found != node.pods.end());
    *found = node.pods.back();
    node.pods.pop_back();
    if (held.counted) gone.push_back(held);
  }
}

void ClusterState::charge(const PodShape& shape, const DeviceSet& devices, int sign, NodeState& state) {
  state.pods_free += sign;
  state.cpu_free += sign * shape.cpu;
  state.memory_free += sign * shape.memory;
  devices.for_each([&](int device) {
    std::int16_t& left = state.free[static_cast<std::size_t>(device)];
    left = static_cast<std::int16_t>(left + sign * shape.gpu_milli);
  });
}

void ClusterState::book(AllocationId id, const Allocation& allocation, int sign) {
  const PodShape& shape = shapes_.shape(allocation.shape);
  NodeState state = state_of(allocation.node);
  const Machine& on = machine(state.machine);
  totals_.whole_free_gpus -= usable_free(on, state);
  charge(shape, allocation.devices, sign, state);
  NodeEntry& node = nodes_[allocation.node.index()];
  count_kind(node, shape, sign, state);
  if (on.topology != TopologyId{}) {
    list(node, id, held_here(allocation), sign);
    state.belief = insides_.believe(on.topology, held_on(node), node.count);
  }
  totals_.pods -= sign;
  totals_.gpu_used -= sign * allocation.devices.size() * shape.gpu_milli;
  totals_.cpu_used -= sign * shape.cpu;
  totals_.whole_free_gpus += usable_free(on, state);
  states_.move_node(allocation.node, state);
}

Result<AllocationId> ClusterState::apply(ShapeId shape, NodeId node, const DeviceSet& devices, Knowledge knowledge) {
  const PodShape& pod = shapes_.shape(shape);
  const NodeState& before = state_of(node);
  if (const Status fit = fits(pod, before, devices); !fit) return fit.error();
  const HoldsId holds = insides_.holds(machine(before.machine), before, pod, devices, knowledge);
  return take({node, shape, devices, holds, knowledge});
}

Result<AllocationId> ClusterState::adopt(ShapeId shape, NodeId node, const DeviceSet& devices, Knowledge knowledge) {
  const PodShape& pod = shapes_.shape(shape);
  const NodeState& before = state_of(node);
  if (devices.size() > pod.gpus || !devices_free(pod, before, devices)) return Error{"stale: a device is taken"};
  if (devices.size() < pod.gpus) knowledge = Knowledge::kUnknown;
  const HoldsId holds = insides_.holds(machine(before.machine), before, pod, devices, knowledge);
  return take({node, shape, devices, holds, knowledge});
}

AllocationId ClusterState::take(const Allocation& allocation) {
  const bool grew = free_ids_.empty();
  AllocationId id{static_cast<std::uint32_t>(allocations_.size())};
  if (grew) {
    allocations_.emplace_back(allocation);
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
    allocations_[id.index()] = allocation;
  }
  book(id, allocation, -1);
  if (open_marks_ > 0) journal_.push_back({Change::kApply, id, allocation, grew});
  after_mutation();
  return id;
}

Status ClusterState::release(AllocationId id) {
  const Allocation* held = allocation(id);
  if (held == nullptr) return Error{"no such allocation"};
  const Allocation copy = *held;
  book(id, copy, +1);
  allocations_[id.index()].reset();
  free_ids_.push_back(id);
  if (open_marks_ > 0) {
    journal_.push_back({Change::kRelease, id, copy, false});
  } else if (copy.counted) {
    drop_stale_count(nodes_[copy.node.index()]);
  }
  after_mutation();
  return ok_status();
}

/// A count of pods that have all left tells nothing any more.
void ClusterState::drop_stale_count(NodeEntry& node) {
  const bool counts = std::any_of(node.pods.begin(), node.pods.end(),
                                  [&](AllocationId id) { return allocations_[id.index()]->counted; });
  if (!counts) node.count = {};
}

ClusterState::Mark ClusterState::mark() {
  ++open_marks_;
  return {journal_.size()};
}

void ClusterState::undo(Mark mark) {
  while (journal_.size() > mark.depth) {
    const JournalEntry entry = journal_.back();
    journal_.pop_back();
    // The free ids form a stack, so undoing newest first meets it exactly as it was left.
    if (entry.change == Change::kApply) {
      book(entry.id, entry.allocation, +1);
      allocations_[entry.id.index()].reset();
      if (entry.grew) {
        allocations_.pop_back();
      } else {
        free_ids_.push_back(entry.id);
      }
    } else {
      assert(free_ids_.back() == entry.id);
      free_ids_.pop_back();
      allocations_[entry.id.index()] = entry.allocation;
      book(entry.id, entry.allocation, -1);
    }
    after_mutation();
  }
  keep(mark);
}

void ClusterState::keep(Mark) {
  assert(open_marks_ > 0);
  if (--open_marks_ == 0) journal_.clear();
}

void ClusterState::after_mutation() {
  ++version_;
  if (kChecksItself && (nodes_.size() <= kCheckEveryUpTo || version_ % kCheckInterval == 0)) {
    [[maybe_unused]] const Status status = check();
    assert(status.ok());
  }
}

const Allocation* ClusterState::allocation(AllocationId id) const {
  if (id.index() >= allocations_.size() || !allocations_[id.index()]) return nullptr;
  return &*allocations_[id.index()];
}

std::optional<NodeId> ClusterState::find_node(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

Status ClusterState::check() const {
  std::vector<NodeState> expected(nodes_.size());
  std::vector<std::vector<NodeInsides::HeldHere>> held_by(nodes_.size());
  ClusterTotals totals;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].present) continue;
    const NodeState& now = state_of(NodeId{static_cast<std::uint32_t>(n)});
    const Machine& m = machine(now.machine);
    expected[n] = empty_state(now.machine);
    totals.nodes += 1;
    totals.gpus += m.gpus - m.gpus_lost;
    totals.gpu_capacity += (m.gpus - m.gpus_lost) * kWholeGpu;
    totals.cpu_capacity += m.cpu;
  }
  for (const auto& held : allocations_) {
    if (!held) continue;
    if (!nodes_[held->node.index()].present) return Error{"a pod is on a node that was removed"};
    const PodShape& shape = shapes_.shape(held->shape);
    NodeState& state = expected[held->node.index()];
    state.kinds |= gpu_pod_kind(shape.gpus, shape.gpu_milli);
    charge(shape, held->devices, -1, state);
    held_by[held->node.index()].push_back(held_here(*held));
    totals.pods += 1;
    totals.gpu_used += held->devices.size() * shape.gpu_milli;
    totals.cpu_used += shape.cpu;
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].present) continue;
    NodeState& state = expected[n];
    const Machine& m = machine(state.machine);
    if (m.topology != TopologyId{}) state.belief = insides_.believe(m.topology, held_by[n], nodes_[n].count);
    totals.whole_free_gpus += usable_free(m, state);
    if (std::any_of(state.free.begin(), state.free.end(), [](std::int16_t left) { return left < 0; })) {
      return Error{"a device of node '" + nodes_[n].name + "' is held by more than it has"};
    }
    if (!(state == state_of(NodeId{static_cast<std::uint32_t>(n)}))) {
      return Error{"node '" + nodes_[n].name + "' is not in the state its allocations give"};
    }
  }
  if (!(totals == totals_)) return Error{"the totals are not the sum of the allocations"};
  return states_.check();
}

}  // namespace mortise::placement
