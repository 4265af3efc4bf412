#include "scheduler/topology/cpu_picker.h"

#include <gtest/gtest.h>

#include "scheduler/topology/json_fields.h"

namespace mortise::topology {
namespace {

// `numas` NUMA nodes of `cores` cores with two threads: core c has CPUs 2c and 2c+1. `per_socket` nodes share a socket.
CpuLayout machine(int numas, int cores, int per_socket) {
  std::vector<CpuPlace> places;
  for (int cpu = 0; cpu < numas * cores * 2; ++cpu) {
    const int core = cpu / 2;
    const int numa = core / cores;
    const int socket = numa / per_socket;
    places.push_back({cpu, core, numa, socket, socket});
  }
  return *CpuLayout::build(places);
}

IndexSet without(const CpuLayout& layout, std::initializer_list<std::size_t> taken) {
  IndexSet cpus = layout.all;
  for (const std::size_t cpu : taken) cpus.erase(cpu);
  return cpus;
}

std::string picked(const CpuLayout& layout, const CpuManagerOptions& options, const IndexSet& available,
                   std::size_t count) {
  const Result<IndexSet> cpus = pick_cpus(layout, options, available, count);
  return cpus ? cpu_list_text(*cpus) : cpus.message();
}

TEST(PickCpus, WholeNumaNodesComeFirst) {
  const CpuLayout layout = machine(2, 2, 1);  // node 0: CPUs 0-3, node 1: CPUs 4-7
  // Node 0 has a CPU taken, so only node 1 is whole.
  EXPECT_EQ(picked(layout, {}, without(layout, {0}), 4), "4-7");
}

TEST(PickCpus, WholeCoresComeBeforeSingleThreads) {
  const CpuLayout layout = machine(1, 4, 1);
  // Core 0 lost CPU 1: its CPU 0 is left over for odd requests.
  EXPECT_EQ(picked(layout, {}, without(layout, {1}), 2), "2-3");
  EXPECT_EQ(picked(layout, {}, without(layout, {1}), 3), "0,2-3");
}

TEST(PickCpus, TheFullerNodeIsUsedUpFirst) {
  const CpuLayout layout = machine(2, 4, 1);  // 0-7 and 8-15
  // Node 1 has fewer free CPUs (6 against 8), so its cores go first.
  EXPECT_EQ(picked(layout, {}, without(layout, {8, 9}), 2), "10-11");
}

TEST(PickCpus, SpreadTakesCpusInOrderOfTheirIds) {
  // Threads 0 and 4 share a core here, as Linux numbers them; taken in order of id they are on different cores.
  std::vector<CpuPlace> places;
  for (int cpu = 0; cpu < 8; ++cpu) places.push_back({cpu, cpu % 4, 0, 0, 0});
  const CpuLayout layout = *CpuLayout::build(places);
  CpuManagerOptions spread;
  spread.distribute_across_cores = true;
  EXPECT_EQ(picked(layout, spread, layout.all, 3), "0-2");
  EXPECT_EQ(picked(layout, {}, layout.all, 3), "0-1,4");  // packed: core {0,4}, then one of the next core
}

TEST(PickCpus, DistributesEvenlyOverTheFewestNodes) {
  const CpuLayout layout = machine(2, 4, 1);  // 8 CPUs per node
  CpuManagerOptions distribute;
  distribute.distribute_across_numa = true;
  // 10 CPUs need both nodes: 5 from each; in a node: two cores and a thread.
  EXPECT_EQ(picked(layout, distribute, layout.all, 10), "0-4,8-12");
  // Without the option node 0 is taken whole, then one core of node 1.
  EXPECT_EQ(picked(layout, {}, layout.all, 10), "0-9");
}

TEST(PickCpus, ACacheIsFilledBeforeCoresElsewhere) {
  std::vector<CpuPlace> places;
  for (int cpu = 0; cpu < 16; ++cpu) places.push_back({cpu, cpu / 2, 0, 0, cpu / 8});  // caches 0-7 and 8-15
  const CpuLayout layout = *CpuLayout::build(places);
  CpuManagerOptions by_cache;
  by_cache.prefer_align_by_uncore_cache = true;
  // 2 CPUs are free in cache 0, 8 in cache 1. Four CPUs do not fit into cache 0.
  const IndexSet available = without(layout, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(picked(layout, by_cache, available, 4), "8-11");
  // Without the option the first free cores go: 6-7, then 8-9.
  EXPECT_EQ(picked(layout, {}, available, 4), "6-9");
}

TEST(PickCpus, TooManyAreRefusedWithKubeletsText) {
  const CpuLayout layout = machine(1, 2, 1);
  EXPECT_EQ(picked(layout, {}, layout.all, 5),
            "not enough cpus available to satisfy request: requested=5, available=4");
}

TEST(CpuLayout, RefusesWhatCannotBe) {
  EXPECT_FALSE(CpuLayout::build(std::vector<CpuPlace>{{1024, 0, 0, 0, 0}}).ok());
  EXPECT_FALSE(CpuLayout::build(std::vector<CpuPlace>{{0, 0, 64, 0, 0}}).ok());
  EXPECT_FALSE(CpuLayout::build(std::vector<CpuPlace>{{0, 0, 0, 0, 0}, {0, 1, 0, 0, 0}}).ok());
}

TEST(CpuLayout, CoresAreNamedByTheirLowestCpu) {
  const CpuLayout layout = *CpuLayout::build(std::vector<CpuPlace>{{7, 3, 0, 0, 0}, {2, 3, 0, 0, 0}, {1, 9, 0, 0, 0}});
  ASSERT_EQ(layout.cores.size(), 2U);
  EXPECT_EQ(layout.cores[0].id, 1);
  EXPECT_EQ(layout.cores[1].id, 2);
}

}  // namespace
}  // namespace mortise::topology
