#include "scheduler/topology/cpu_accumulator.h"

#include <algorithm>

namespace mortise::topology {
namespace {

// take_free_groups(): a group is free when all its own CPUs are.
constexpr std::size_t kOwnSize = 0;

}  // namespace

CpuAccumulator::CpuAccumulator(const CpuLayout& layout, const IndexSet& available, std::size_t count, bool spread)
    : layout_(layout), free_(available & layout.all), needed_(static_cast<std::int64_t>(count)), spread_(spread) {}

// Those with free CPUs in `within`, fewest free CPUs first, then the lower id.
CpuAccumulator::Groups CpuAccumulator::sorted_within(const std::vector<CpuGroup>& groups,
                                                     const IndexSet& within) const {
  Groups sorted;
  const IndexSet here = free_ & within;
  for (const CpuGroup& group : groups) {
    if (!(group.cpus & here).empty()) sorted.push_back(&group);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [this](const CpuGroup* a, const CpuGroup* b) { return free_in(*a) < free_in(*b); });
  return sorted;
}

CpuAccumulator::Groups CpuAccumulator::nested(const Groups& outer, const std::vector<CpuGroup>& inner) const {
  Groups result;
  for (const CpuGroup* group : outer) {
    const Groups part = sorted_within(inner, group->cpus);
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

CpuAccumulator::Groups CpuAccumulator::sorted_numas() const {
  if (numa_above_socket()) return sorted_within(layout_.numas, layout_.all);
  return nested(sorted_sockets(), layout_.numas);
}

CpuAccumulator::Groups CpuAccumulator::sorted_sockets() const {
  if (!numa_above_socket()) return sorted_within(layout_.sockets, layout_.all);
  return nested(sorted_numas(), layout_.sockets);
}

CpuAccumulator::Groups CpuAccumulator::sorted_cores() const {
  return nested(numa_above_socket() ? sorted_sockets() : sorted_numas(), layout_.cores);
}

void CpuAccumulator::take(const IndexSet& cpus) {
  taken_ |= cpus;
  free_ -= taken_;
  needed_ -= static_cast<std::int64_t>(cpus.count());
}

// Which groups are free is decided before the first one is taken.
void CpuAccumulator::take_free_groups(const Groups& groups, std::size_t whole_size) {
  Groups free_groups;
  for (const CpuGroup* group : groups) {
    const std::size_t whole = whole_size == kOwnSize ? group->cpus.count() : whole_size;
    if (free_in(*group) == whole) free_groups.push_back(group);
  }
  for (const CpuGroup* group : free_groups) {
    if (needed_ >= static_cast<std::int64_t>(group->cpus.count())) take(group->cpus);
  }
}

void CpuAccumulator::take_whole_nodes() {
  const auto take_numas = [this] { take_free_groups(sorted_numas(), kOwnSize); };
  const auto take_sockets = [this] { take_free_groups(sorted_sockets(), layout_.per_socket()); };
  if (numa_above_socket()) {
    take_numas();
    if (!satisfied()) take_sockets();
  } else {
    take_sockets();
    if (!satisfied()) take_numas();
  }
}

// Takes the rest from one cache, if the cores it needs there give exactly that many CPUs.
void CpuAccumulator::take_part_of_cache(const CpuGroup& cache) {
  const auto per_core = static_cast<std::int64_t>(layout_.per_core());
  const std::int64_t cores_needed = (needed_ + per_core - 1) / per_core;
  IndexSet cpus;
  std::int64_t cores = 0;
  for (const CpuGroup& core : layout_.cores) {
    if (cores == cores_needed) break;
    if ((core.cpus & cache.cpus & free_).empty()) continue;
    cpus |= core.cpus & free_;
    ++cores;
  }
  if (needed_ % 2 != 0 && per_core > 1 && static_cast<std::int64_t>(cpus.count()) > needed_) {
    std::size_t highest = 0;
    cpus.for_each([&](std::size_t cpu) { highest = cpu; });
    cpus.erase(highest);
  }
  if (static_cast<std::int64_t>(cpus.count()) == needed_) take(cpus);
}

void CpuAccumulator::take_caches() {
  for (const CpuGroup* cache : nested(sorted_numas(), layout_.caches)) {
    if (needed_ >= static_cast<std::int64_t>(layout_.per_cache())) {
      take_free_groups(nested(sorted_numas(), layout_.caches), kOwnSize);
    }
    if (satisfied()) return;
    take_part_of_cache(*cache);
    if (satisfied()) return;
  }
}

void CpuAccumulator::take_whole_cores() {
  take_free_groups(sorted_cores(), layout_.per_core());
}

void CpuAccumulator::take_single_cpus() {
  for (const CpuGroup* group : spread_ ? sorted_sockets() : sorted_cores()) {
    const IndexSet cpus = group->cpus & free_;
    cpus.for_each([this](std::size_t cpu) {
      if (satisfied()) return;
      IndexSet one;
      one.insert(cpu);
      take(one);
    });
    if (satisfied()) return;
  }
}

}  // namespace mortise::topology
