// Planning a gang on a cluster that is used by other pods. Names: gang/WHAT/MEMBERS/NODES; those of growth/ are for
// curves, and singles/ are the members of the same gangs as pods for themselves, one after the other.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/base/rng.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/gang_planner.h"
#include "scheduler/placement/policy.h"

namespace {

using namespace mortise;
using namespace mortise::placement;

constexpr std::size_t kNodesPerRack = 16;
constexpr std::size_t kRacksPerBlock = 16;
constexpr std::size_t kBlocksPerZone = 8;
constexpr const char* kPolicy = "fgd:tie=best-fit";

/// Nodes of 8 GPUs in zones, blocks and racks. Somewhat more than half of them run something: pods of 1 to 8 GPUs, with
/// amounts of CPU of their own, so that hardly two of them are alike; some of the others run a pod without GPUs.
struct Site {
  explicit Site(std::size_t nodes)
      : domains(cluster, {{"zone", "zone"}, {"block", "block"}, {"rack", "rack"}}),
        policy(*make_policy(kPolicy, typical(cluster))),
        engine(cluster, *make_policy(kPolicy, typical(cluster)), 1) {
    Rng rng(nodes);
    for (std::size_t n = 0; n < nodes; ++n) {
      NodeSpec spec{"n" + std::to_string(n), 128'000, std::int64_t{1} << 40, 110, 8, "H100"};
      const NodeId id = *cluster.add_node(spec, rng.bits() >> 1);
      const std::size_t rack = n / kNodesPerRack;
      const std::size_t block = rack / kRacksPerBlock;
      domains.set_node(id, std::vector<Label>{{"zone", "z" + std::to_string(block / kBlocksPerZone)},
                                              {"block", "b" + std::to_string(block)},
                                              {"rack", "r" + std::to_string(rack)}});
      fill(id, rng);
    }
    domains.refresh();
  }

  /// As many classes as the published workload has, about.
  static TypicalPods typical(ClusterState& cluster) {
    std::vector<PodClass> classes;
    for (const std::int32_t gpus : {0, 1, 2, 4, 8}) {
      for (MilliCpu cpu = 2'000; cpu <= 16'000; cpu += 2'000) {
        PodClass made;
        made.cpu = cpu;
        made.gpus = gpus;
        made.gpu_milli = gpus > 0 ? kWholeGpu : 0;
        classes.push_back(made);
      }
    }
    return {classes, cluster};
  }

  void fill(NodeId id, Rng& rng) {
    const std::uint64_t kind = rng.below(100);
    PodRequest pod;
    pod.cpu = static_cast<MilliCpu>(1000 + 100 * rng.below(300));
    if (kind < 55) pod.gpus = 1 + static_cast<std::int32_t>(rng.below(8));
    if (kind >= 65) return;
    DeviceSet devices;
    for (int d = 0; d < pod.gpus; ++d) devices.insert(d);
    if (!cluster.apply(cluster.intern(pod), id, devices).ok()) std::abort();
  }

  ClusterState cluster;
  Domains domains;
  std::unique_ptr<Policy> policy;
  Engine engine;

  static Site& of(std::size_t nodes) {
    static std::map<std::size_t, Site> sites;
    return sites.try_emplace(nodes, nodes).first->second;
  }
};

GangRole role(const std::string& name, int count, int gpus, MilliCpu cpu) {
  GangRole made;
  made.name = name;
  made.count = made.min = count;
  made.pod.gpus = gpus;
  made.pod.cpu = cpu;
  return made;
}

void plan(benchmark::State& state, const GangRequest& request, std::size_t nodes, bool fits) {
  Site& site = Site::of(nodes);
  GangPlanner planner(site.cluster, site.domains, *site.policy, 1);
  std::size_t placed = 0;
  for (auto _ : state) {
    const GangDecision decision = planner.plan(request);
    if (std::holds_alternative<GangPlan>(decision) != fits) {
      state.SkipWithError("the gang was not planned as expected");
      return;
    }
    placed = fits ? std::get<GangPlan>(decision).members.size() : 0;
  }
  state.counters["placed"] = static_cast<double>(placed);
}

/// Each takes its place before the next is decided about.
void place_singles(benchmark::State& state, const GangRequest& request, std::size_t nodes) {
  Site& site = Site::of(nodes);
  std::vector<AllocationId> taken;
  for (auto _ : state) {
    for (const GangRole& role : request.roles) {
      for (int i = 0; i < role.count; ++i) {
        const Decision decision = site.engine.plan(role.pod);
        const auto* placed = std::get_if<Placed>(&decision);
        if (placed == nullptr) return state.SkipWithError("a pod was not placed");
        taken.push_back(*site.engine.commit(role.pod, *placed));
      }
    }
    state.PauseTiming();
    for (const AllocationId id : taken) (void)site.cluster.release(id);
    taken.clear();
    state.ResumeTiming();
  }
}

std::string name_of(const std::string& what, int members, std::size_t nodes) {
  return what + "/" + std::to_string(members) + "/" + std::to_string(nodes);
}

void add(const std::string& what, int members, std::size_t nodes, const GangRequest& request, bool fits = true) {
  benchmark::RegisterBenchmark(name_of("gang/" + what, members, nodes).c_str(), plan, request, nodes, fits);
}

GangRequest of(std::vector<GangRole> roles, const std::string& required = "", const std::string& preferred = "") {
  GangRequest request;
  request.roles = std::move(roles);
  request.required_level = required;
  request.preferred_level = preferred;
  return request;
}

void add_growth(int members, std::size_t nodes) {
  const int third = members / 3;
  const GangRequest one = of({role("worker", members, 8, 64'000)});
  const GangRequest three =
      of({role("a", third, 8, 8'000), role("b", third, 4, 8'000), role("c", members - 2 * third, 1, 8'000)});
  benchmark::RegisterBenchmark(name_of("growth/one-role", members, nodes).c_str(), plan, one, nodes, true);
  benchmark::RegisterBenchmark(name_of("growth/three-roles", members, nodes).c_str(), plan, three, nodes, true);
  benchmark::RegisterBenchmark(name_of("singles/one-role", members, nodes).c_str(), place_singles, one, nodes);
  benchmark::RegisterBenchmark(name_of("singles/three-roles", members, nodes).c_str(), place_singles, three, nodes);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t kNodes = 10'000;
  for (const int members : {16, 64, 512, 4096}) {
    add("8-gpu", members, kNodes, of({role("worker", members, 8, 64'000)}));
  }
  for (const std::size_t nodes : {std::size_t{1'000}, std::size_t{100'000}}) {
    add("8-gpu", 64, nodes, of({role("worker", 64, 8, 64'000)}));
  }
  add("1-gpu", 4096, kNodes, of({role("worker", 4096, 1, 4'000)}));
  add("in-a-block", 64, kNodes, of({role("worker", 64, 8, 64'000)}, "block", "rack"));
  add("with-master", 513, kNodes, of({role("worker", 512, 8, 64'000), role("master", 1, 0, 4'000)}));
  add("three-roles", 600, kNodes, of({role("a", 200, 8, 8'000), role("b", 200, 4, 8'000), role("c", 200, 1, 8'000)}));
  add("in-a-rack", 16, kNodes, of({role("a", 4, 8, 8'000), role("b", 4, 4, 8'000), role("c", 8, 1, 8'000)}, "rack"));
  add("no-room", 5000, kNodes, of({role("worker", 5000, 8, 64'000)}), false);
  for (const std::size_t nodes : {1'250U, 2'500U, 5'000U, 20'000U}) add_growth(512, nodes);
  for (const int members : {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}) add_growth(members, kNodes);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
