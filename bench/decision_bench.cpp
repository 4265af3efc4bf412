// One decision: plan, commit, and the release of what makes room for it. Names: decide/POLICY/NODES.
#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <utility>

#include "bench/churn.h"
#include "scheduler/placement/policy.h"

namespace {

using mortise::bench::Churn;

void decide(benchmark::State& state, const std::string& policy, std::size_t nodes) {
  // The library calls this several times to find the number of iterations; filling the cluster is no part of it.
  static std::map<std::pair<std::string, std::size_t>, Churn> clusters;
  const auto [entry, fresh] = clusters.try_emplace({policy, nodes}, nodes, policy);
  Churn& churn = entry->second;
  for (auto _ : state) churn.step();
  state.counters["placed"] = churn.placed_share();
  state.counters["gpu_used"] = churn.gpu_share_used();
}

void add(const std::string& policy, std::size_t nodes) {
  benchmark::RegisterBenchmark(("decide/" + policy + "/" + std::to_string(nodes)).c_str(), decide, policy, nodes);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t kSmall = 1'000;
  constexpr std::size_t kMedium = 10'000;
  constexpr std::size_t kLarge = 100'000;
  for (const auto& info : mortise::placement::policy_table()) add(std::string(info.name), kSmall);
  for (const std::string policy : {"best-fit", "fgd"}) {
    add(policy, kMedium);
    add(policy, kLarge);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
