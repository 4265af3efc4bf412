#include "scheduler/topology/cpu_layout.h"

#include <algorithm>
#include <map>
#include <string>

namespace mortise::topology {
namespace {

std::vector<CpuGroup> group_by(std::span<const CpuPlace> places, std::int32_t CpuPlace::*key) {
  std::map<std::int32_t, IndexSet> groups;
  for (const CpuPlace& place : places) groups[place.*key].insert(static_cast<std::size_t>(place.cpu));
  std::vector<CpuGroup> sorted;
  for (const auto& [id, cpus] : groups) sorted.push_back({id, cpus});
  return sorted;
}

std::int32_t lowest(const IndexSet& cpus) {
  std::int32_t first = -1;
  cpus.for_each([&](std::size_t cpu) {
    if (first < 0) first = static_cast<std::int32_t>(cpu);
  });
  return first;
}

}  // namespace

Result<CpuLayout> CpuLayout::build(std::span<const CpuPlace> places) {
  CpuLayout layout;
  for (const CpuPlace& place : places) {
    if (place.cpu < 0 || static_cast<std::size_t>(place.cpu) >= IndexSet::kCapacity) {
      return Error{"CPU id " + std::to_string(place.cpu) + " is outside 0.." + std::to_string(IndexSet::kCapacity - 1)};
    }
    if (place.numa < 0 || place.numa >= kMaxNumaNodes) {
      return Error{"NUMA node id " + std::to_string(place.numa) + " is outside 0..63"};
    }
    if (layout.all.contains(static_cast<std::size_t>(place.cpu))) {
      return Error{"CPU " + std::to_string(place.cpu) + " appears twice"};
    }
    layout.all.insert(static_cast<std::size_t>(place.cpu));
    layout.numa_nodes |= numa_bit(place.numa);
  }
  layout.cores = group_by(places, &CpuPlace::core);
  for (CpuGroup& core : layout.cores) core.id = lowest(core.cpus);
  std::sort(layout.cores.begin(), layout.cores.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  layout.sockets = group_by(places, &CpuPlace::socket);
  layout.numas = group_by(places, &CpuPlace::numa);
  layout.caches = group_by(places, &CpuPlace::cache);
  return layout;
}

const IndexSet& CpuLayout::cpus_of_numa(int id) const {
  static const IndexSet kNone;
  for (const CpuGroup& numa : numas) {
    if (numa.id == id) return numa.cpus;
  }
  return kNone;
}

IndexSet CpuLayout::whole_cores(const IndexSet& cpus) const {
  IndexSet whole;
  for (const CpuGroup& core : cores) {
    if (!(core.cpus & cpus).empty()) whole |= core.cpus;
  }
  return whole;
}

std::size_t CpuLayout::sockets_in(NumaMask nodes) const {
  IndexSet cpus;
  for_each_node(nodes, [&](int id) { cpus |= cpus_of_numa(id); });
  return static_cast<std::size_t>(std::count_if(sockets.begin(), sockets.end(),
                                                [&](const CpuGroup& socket) { return !(socket.cpus & cpus).empty(); }));
}

}  // namespace mortise::topology
