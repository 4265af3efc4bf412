#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/topology/cpu_layout.h"

namespace mortise::topology {

/// Collects CPUs for one container: what is still free, what was taken, how many are missing.
class CpuAccumulator {
 public:
  /// `spread`: single CPUs are taken across cores (distribute-cpus-across-cores).
  CpuAccumulator(const CpuLayout& layout, const IndexSet& available, std::size_t count, bool spread);

  bool satisfied() const { return needed_ < 1; }
  bool failed() const { return needed_ > static_cast<std::int64_t>(free_.count()); }
  std::int64_t needed() const { return needed_; }
  const IndexSet& taken() const { return taken_; }
  std::size_t free_in_numa(int id) const { return (free_ & layout_.cpus_of_numa(id)).count(); }
  IndexSet free_cpus_in_numa(int id) const { return free_ & layout_.cpus_of_numa(id); }
  /// NUMA nodes with free CPUs in the order in which they are used up.
  std::vector<const CpuGroup*> sorted_numas() const;

  void take(const IndexSet& cpus);
  /// Whole NUMA nodes and sockets; the bigger of the two kinds first.
  void take_whole_nodes();
  void take_caches();
  void take_whole_cores();
  void take_single_cpus();

 private:
  using Groups = std::vector<const CpuGroup*>;

  bool numa_above_socket() const { return layout_.sockets.size() >= layout_.numas.size(); }
  std::size_t free_in(const CpuGroup& group) const { return (group.cpus & free_).count(); }
  Groups sorted_within(const std::vector<CpuGroup>& groups, const IndexSet& within) const;
  Groups nested(const Groups& outer, const std::vector<CpuGroup>& inner) const;
  Groups sorted_sockets() const;
  Groups sorted_cores() const;
  void take_free_groups(const Groups& groups, std::size_t whole_size);
  void take_part_of_cache(const CpuGroup& cache);

  const CpuLayout& layout_;
  IndexSet free_;
  IndexSet taken_;
  std::int64_t needed_;
  bool spread_;
};

}  // namespace mortise::topology
