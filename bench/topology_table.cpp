// What topology-aware placement is worth: 2-, 4- and 8-GPU jobs come to and go from machines with NVLink meshes and
// with PCIe only, at the same allocation under every policy. Prints the table of docs/topology.md; no times in it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/rng.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/placement_quality.h"
#include "scheduler/placement/policy.h"
#include "scheduler/topology/sources/catalogue.h"

namespace mortise::bench {
namespace {

constexpr int kNodesOfAKind = 32;
constexpr int kSteps = 20'000;
constexpr std::uint64_t kSeeds[] = {42, 43, 44, 45, 46};
// Jobs in a hundred; what the sum of the shares leaves is 8-GPU jobs.
constexpr std::uint64_t kPairs = 60;
constexpr std::uint64_t kFours = 30;

template <class T>
T need(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "bench: %s\n", result.message().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

struct Means {
  double allocation = 0;
  double bandwidth = 0;
  double ring = 0;
  double numa = 0;
  double placed = 0;
};

placement::PodRequest job(int gpus) {
  placement::PodRequest pod;
  pod.cpu = 4000 * gpus;
  pod.memory = 32 * 1024 * kMiB * gpus;
  pod.gpus = gpus;
  return pod;
}

class Driver {
 public:
  Driver(const topology::Catalogue& catalogue, placement::AssignmentMode mode, const std::string& policy,
         std::uint64_t seed)
      : rng_(seed) {
    for (const char* name : {"dgx-1v", "a100-pcie-8"}) {
      placement::TopologySpec spec;
      spec.mode = mode;
      const auto topology = need(table_.intern(need(catalogue.find(name))->machine, spec));
      for (int i = 0; i < kNodesOfAKind; ++i) {
        placement::NodeSpec node;
        node.name = name + std::string("-") + std::to_string(i);
        node.cpu = 96'000;
        node.memory = 512 * 1024 * kMiB;
        node.pods = 110;
        node.gpus = topology->gpus();
        node.topology = topology;
        need(cluster_.add_node(node, mix64(seed ^ hash_text(node.name))));
      }
    }
    std::vector<placement::PodClass> classes;
    for (std::uint64_t i = 0; i < 100; ++i) classes.push_back({4000 * gpus_of(i), kWholeGpu, gpus_of(i), "", {}});
    engine_.emplace(cluster_, need(placement::make_policy(policy, placement::TypicalPods(classes, cluster_))), seed);
  }

  /// Jobs arrive until `load` percent of the GPUs are taken, then one goes and others come, over and over.
  Means run(int load) {
    Means means;
    double jobs = 0;
    double quality_jobs = 0;
    for (int step = 0; step < kSteps; ++step) {
      while (100 * cluster_.totals().gpu_used > load * cluster_.totals().gpu_capacity) leave();
      const int gpus = gpus_of(rng_.below(100));
      const placement::PodRequest pod = job(gpus);
      const placement::Decision decision = engine_->plan(pod);
      jobs += 1;
      if (const auto* placed = std::get_if<placement::Placed>(&decision)) {
        held_.push_back(need(engine_->commit(pod, *placed)));
        means.placed += 1;
        if (const auto quality = meter_.judge(cluster_, placed->node, placed->devices)) {
          quality_jobs += 1;
          means.bandwidth += static_cast<double>(quality->bandwidth_permille) / 10;
          means.ring += static_cast<double>(quality->ring_permille) / 10;
          means.numa += quality->numa_nodes;
        }
      } else if (!held_.empty()) {
        leave();
      }
      means.allocation +=
          100 * static_cast<double>(cluster_.totals().gpu_used) / static_cast<double>(cluster_.totals().gpu_capacity);
    }
    means.allocation /= kSteps;
    means.placed = 100 * means.placed / jobs;
    means.bandwidth /= quality_jobs;
    means.ring /= quality_jobs;
    means.numa /= quality_jobs;
    return means;
  }

 private:
  static int gpus_of(std::uint64_t draw) { return draw < kPairs ? 2 : draw < kPairs + kFours ? 4 : 8; }

  void leave() {
    const std::uint64_t at = rng_.below(held_.size());
    need(cluster_.release(held_[at]));
    held_[at] = held_.back();
    held_.pop_back();
  }

  Rng rng_;
  placement::NodeTopologyTable table_;
  placement::ClusterState cluster_;
  std::optional<placement::Engine> engine_;
  placement::QualityMeter meter_;
  std::vector<AllocationId> held_;
};

void print_rows(const topology::Catalogue& catalogue, placement::AssignmentMode mode, const char* name) {
  for (const int load : {60, 80, 90}) {
    for (const char* policy : {"random", "best-fit", "fgd", "fgd+topology", "topology"}) {
      Means sum;
      for (const std::uint64_t seed : kSeeds) {
        const Means one = Driver(catalogue, mode, policy, seed).run(load);
        sum.allocation += one.allocation / std::size(kSeeds);
        sum.bandwidth += one.bandwidth / std::size(kSeeds);
        sum.ring += one.ring / std::size(kSeeds);
        sum.numa += one.numa / std::size(kSeeds);
        sum.placed += one.placed / std::size(kSeeds);
      }
      std::printf("| %s | %d | %s | %.1f | %.1f | %.1f | %.1f | %.2f |\n", name, load, policy, sum.allocation,
                  sum.placed, sum.bandwidth, sum.ring, sum.numa);
    }
  }
}

}  // namespace
}  // namespace mortise::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CATALOGUE_DIR\n", argv[0]);
    return 2;
  }
  const auto catalogue = mortise::bench::need(mortise::topology::Catalogue::load(argv[1]));
  std::printf("| assignment | load %% | policy | allocation %% | placed %% | bandwidth %% | ring %% | NUMA nodes |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  mortise::bench::print_rows(catalogue, mortise::placement::AssignmentMode::kPredicted, "predicted");
  mortise::bench::print_rows(catalogue, mortise::placement::AssignmentMode::kEnforced, "enforced");
}
