// One admission as kubelet would decide it, warm. Names: admit/NUMA nodes/policy: four resources (two kinds of
// devices, CPUs, memory) asked by one container; merge/NUMA nodes: only the merge of four full lists of hints;
// walk/NUMA nodes: that merge by trying every combination of hints, which is what kubelet does.
#include <benchmark/benchmark.h>

#include <bit>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/topology/topology_manager.h"

namespace {

using namespace mortise::topology;

constexpr int kCpusPerNode = 16;
constexpr mortise::Bytes kMemoryPerNode = mortise::Bytes{64} << 30;

// `numas` NUMA nodes with 16 CPUs, 64 GiB, two GPUs and one NIC each; a part of everything is taken.
NodeState half_full_node(int numas) {
  NodeState node;
  std::vector<CpuPlace> places;
  DeviceResource gpus{"nvidia.com/gpu", {}};
  DeviceResource nics{"example.com/nic", {}};
  node.memory_types = {"memory"};
  for (int numa = 0; numa < numas; ++numa) {
    node.nodes.all |= numa_bit(numa);
    for (int i = 0; i < kCpusPerNode; ++i) {
      const int cpu = numa * kCpusPerNode + i;
      places.push_back({cpu, cpu / 2, numa, numa / 4, numa});
    }
    for (int i = 0; i < 3; ++i) {
      Device device;
      device.id = "d" + std::to_string(numa) + "." + std::to_string(i);
      device.topology = DeviceTopology::kNodes;
      device.numa = numa_bit(numa);
      device.allocated = (numa + i) % 3 == 0;
      (i < 2 ? gpus : nics).devices.push_back(device);
    }
    NumaMemory memory;
    memory.allocatable[0] = memory.free[0] = kMemoryPerNode;
    memory.group = numa_bit(numa);
    node.memory.push_back(memory);
  }
  node.devices = {gpus, nics};
  node.cpus = *CpuLayout::build(places);
  node.reserved_cpus.insert(0);
  node.shared_cpus = node.cpus.all;
  return node;
}

PodAsk spanning_pod() {
  ContainerAsk container;
  container.name = "main";
  container.cpu = 20'000;
  container.devices = {{0, 3}, {1, 2}};
  container.memory = {{0, kMemoryPerNode + kMemoryPerNode / 2}};
  PodAsk pod;
  pod.qos = QosClass::kGuaranteed;
  pod.containers.push_back(container);
  return pod;
}

void admit(benchmark::State& state, int numas, TopologyPolicy policy) {
  const NodeState node = half_full_node(numas);
  const PodAsk pod = spanning_pod();
  KubeletConfig config;
  config.policy = policy;
  config.cpu_static = true;
  config.memory_static = true;
  TopologyManager manager;
  for (auto _ : state) benchmark::DoNotOptimize(manager.admit(node, config, pod));
}

// Every mask in every list and none preferred: (2^n - 1)^4 combinations.
std::vector<HintList> full_lists(int numas) {
  HintList every;
  for_each_submask((NumaMask{1} << numas) - 1, [&every](NumaMask mask) { every.push_back({mask, false}); });
  return std::vector<HintList>(4, every);
}

void merge(benchmark::State& state, int numas) {
  NumaNodes nodes;
  nodes.all = (NumaMask{1} << numas) - 1;
  const std::vector<HintList> lists = full_lists(numas);
  KubeletConfig config;
  config.policy = TopologyPolicy::kBestEffort;
  HintMerger merger;
  for (auto _ : state) benchmark::DoNotOptimize(merger.merge(config, nodes, lists));
}

void try_all(std::span<const HintList> lists, Hint merged, Hint& best) {
  if (lists.empty()) {
    const auto rank = [](const Hint& hint) { return std::tuple(!hint.preferred, std::popcount(hint.mask), hint.mask); };
    if (merged.mask != 0 && rank(merged) < rank(best)) best = merged;
    return;
  }
  for (const Hint& hint : lists.front()) {
    try_all(lists.subspan(1), {merged.mask & hint.mask, merged.preferred && hint.preferred}, best);
  }
}

void walk(benchmark::State& state, int numas) {
  const std::vector<HintList> lists = full_lists(numas);
  const Hint all{(NumaMask{1} << numas) - 1, true};
  for (auto _ : state) {
    Hint best{all.mask, false};
    try_all(lists, all, best);
    benchmark::DoNotOptimize(best);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("walk/4", walk, 4);
  for (const int numas : {1, 2, 4, 8}) {
    for (const TopologyPolicy policy :
         {TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted, TopologyPolicy::kSingleNumaNode}) {
      const std::string name = "admit/" + std::to_string(numas) + "/" + std::string(to_text(policy));
      benchmark::RegisterBenchmark(name.c_str(), admit, numas, policy);
    }
    benchmark::RegisterBenchmark(("merge/" + std::to_string(numas)).c_str(), merge, numas);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
