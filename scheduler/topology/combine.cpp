#include "scheduler/topology/combine.h"

#include <algorithm>
#include <map>
#include <utility>

namespace mortise::topology {
namespace {

template <class T>
void fill(std::optional<T>& value, const std::optional<T>& more) {
  if (!value) value = more;
}

void fill(std::string& value, const std::string& more) {
  if (value.empty()) value = more;
}

std::map<int, int> gpus_per_numa(const Machine& machine) {
  std::map<int, int> count;
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.numa.size() == 1) ++count[gpu.numa.front()];
  }
  return count;
}

bool same_indexes(const Machine& a, const Machine& b) {
  return std::equal(a.gpus.begin(), a.gpus.end(), b.gpus.begin(), b.gpus.end(),
                    [](const Gpu& x, const Gpu& y) { return x.index == y.index; });
}

void fill_numa(Machine& machine, const Machine& more) {
  for (const NumaNode& other : more.numa) {
    NumaNode& node = numa_node(machine, other.id);
    fill(node.socket, other.socket);
    const bool same_count = !node.cpu_count || !other.cpus || *node.cpu_count == cpu_count(*other.cpus);
    if (same_count) fill(node.cpus, other.cpus);
    if (!node.cpus) fill(node.cpu_count, other.cpu_count);
    fill(node.memory, other.memory);
    fill(node.memory_of_gpu, other.memory_of_gpu);
    if (node.distances.empty()) node.distances = other.distances;
  }
}

void take_devices(Machine& machine, const Machine& more) {
  machine.gpus = more.gpus;
  machine.gpus_numbered = more.gpus_numbered;
  machine.nics = more.nics;
  machine.bridges = more.bridges;
  machine.gpu_links = more.gpu_links;
  machine.nic_links = more.nic_links;
}

// Bridges come as a whole, and only where no class of the own links could contradict them.
void fill_bridges(Machine& machine, const Machine& more) {
  const bool classes_known =
      !machine.nic_links.empty() || std::any_of(machine.gpu_links.begin(), machine.gpu_links.end(),
                                                [](const GpuLink& link) { return link.pcie != LinkClass::kUnknown; });
  if (!machine.bridges.empty() || classes_known || more.bridges.empty()) return;
  machine.bridges = more.bridges;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) machine.gpus[i].bridge = more.gpus[i].bridge;
  for (Nic& nic : machine.nics) {
    for (const Nic& other : more.nics) {
      if (other.name == nic.name || (!nic.device.empty() && other.device == nic.device)) nic.bridge = other.bridge;
    }
  }
}

void fill_devices(Machine& machine, const Machine& more) {
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    Gpu& gpu = machine.gpus[i];
    const Gpu& other = more.gpus[i];
    fill(gpu.model, other.model);
    fill(gpu.uuid, other.uuid);
    fill(gpu.bus_id, other.bus_id);
    fill(gpu.cpus, other.cpus);
    if (gpu.numa.empty()) gpu.numa = other.numa;
  }
  fill_bridges(machine, more);
  if (machine.gpu_links.empty()) machine.gpu_links = more.gpu_links;
  if (machine.nics.empty()) {
    machine.nics = more.nics;
    machine.nic_links = more.nic_links;
    if (machine.bridges != more.bridges) {
      for (Nic& nic : machine.nics) nic.bridge.reset();
    }
  }
}

// Models are the same on every index, so they hold whatever the numbering.
void fill_models(Machine& machine, const Machine& more) {
  const bool alike = std::all_of(more.gpus.begin(), more.gpus.end(),
                                 [&](const Gpu& gpu) { return gpu.model == more.gpus.front().model; });
  for (Gpu& gpu : machine.gpus) {
    if (alike && !more.gpus.empty()) fill(gpu.model, more.gpus.front().model);
  }
}

// Returns what contradicts, or nothing.
std::string merge_devices(Machine& machine, const Machine& more) {
  if (more.gpus.empty()) return {};
  if (machine.gpus.empty()) {
    take_devices(machine, more);
    return {};
  }
  if (machine.gpus.size() != more.gpus.size()) {
    return "has " + std::to_string(more.gpus.size()) + " GPUs instead of " + std::to_string(machine.gpus.size());
  }
  const std::map<int, int> ours = gpus_per_numa(machine);
  const std::map<int, int> theirs = gpus_per_numa(more);
  const bool same_spread = ours.empty() || theirs.empty() || ours == theirs;
  if (machine.gpus_numbered && more.gpus_numbered && same_indexes(machine, more)) {
    fill_devices(machine, more);
  } else if (!machine.gpus_numbered && more.gpus_numbered && same_spread && !theirs.empty()) {
    take_devices(machine, more);
  } else {
    fill_models(machine, more);
  }
  return same_spread ? std::string() : "has the GPUs on other NUMA nodes";
}

}  // namespace

void combine(Reading& reading, const Reading& more, std::string_view name) {
  const auto note = [&](const std::string& what) { reading.notes.push_back(std::string(name) + " " + what); };
  fill(reading.node, more.node);
  reading.notes.insert(reading.notes.end(), more.notes.begin(), more.notes.end());
  Machine& machine = reading.machine;
  machine.kubelet = machine.kubelet.or_else(more.machine.kubelet);

  Machine merged = machine;
  fill_numa(merged, more.machine);
  const std::string contradiction = merge_devices(merged, more.machine);
  if (!contradiction.empty()) note(contradiction + "; its devices are left out");
  add_named_numa(merged);
  const Status status = check(merged);
  if (status) {
    machine = std::move(merged);
  } else {
    note("does not fit the other sources (" + status.message() + "); left out");
    if (machine.gpus.size() == more.machine.gpus.size()) fill_models(machine, more.machine);
  }
}

}  // namespace mortise::topology
