// One admission as kubelet would decide it, warm. Names: admit/NUMA nodes/policy: four resources (two kinds of
// devices, CPUs, memory) asked by one container; merge/NUMA nodes: only the merge of four full lists of hints.
#include <benchmark/benchmark.h>

#include <string>
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

// Every mask in every list and none preferred: kubelet would walk through (2^n - 1)^4 combinations.
void merge(benchmark::State& state, int numas) {
  NumaNodes nodes;
  nodes.all = (NumaMask{1} << numas) - 1;
  HintList every;
  for_each_submask(nodes.all, [&every](NumaMask mask) { every.push_back({mask, false}); });
  const std::vector<HintList> lists(4, every);
  KubeletConfig config;
  config.policy = TopologyPolicy::kBestEffort;
  HintMerger merger;
  for (auto _ : state) benchmark::DoNotOptimize(merger.merge(config, nodes, lists));
}

}  // namespace

int main(int argc, char** argv) {
  for (const int numas : {1, 2, 8}) {
    for (const TopologyPolicy policy :
         {TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted, TopologyPolicy::kSingleNumaNode}) {
      const std::string name = "admit/" + std::to_string(numas) + "/" + std::string(to_text(policy));
      benchmark::RegisterBenchmark(name.c_str(), admit, numas, policy);
    }
    benchmark::RegisterBenchmark(("merge/" + std::to_string(numas)).c_str(), merge, numas);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
