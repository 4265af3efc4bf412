// The best set of free GPUs. Names: look_up/OBJECTIVE/GPUS, look_up_required/nvidia/GPUS, make_tables/OBJECTIVE/GPUS,
// and for comparison remembered/GPUS: the same questions looked up in a hash table of answers.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/base/rng.h"
#include "scheduler/topology/device_sets.h"

namespace {

using mortise::Rng;
using mortise::topology::DeviceSets;
using mortise::topology::GpuSet;
using mortise::topology::Objective;
using mortise::topology::ObjectiveInfo;
using mortise::topology::PairMatrix;

// Two sockets of PCIe switches with two GPUs each, every other pair bridged: no two objectives see the same.
PairMatrix machine(int gpus, bool scores) {
  PairMatrix pairs(gpus);
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) {
      const bool bridged = a / 2 == b / 2 && a % 4 < 2;
      const bool socket = a / (gpus / 2) == b / (gpus / 2);
      const std::int64_t pcie = scores ? (a / 2 == b / 2 ? 50
                                          : socket       ? 30
                                                         : 10)
                                       : (a / 2 == b / 2 ? 24
                                          : socket       ? 22
                                                         : 16);
      pairs.set(a, b, bridged ? (scores ? 1200 + pcie : 300) : pcie);
    }
  }
  return pairs;
}

DeviceSets make(int gpus) {
  return *DeviceSets::of(machine(gpus, false), machine(gpus, true));
}

const DeviceSets& warm(int gpus) {
  static std::map<int, DeviceSets> made;
  return made.try_emplace(gpus, make(gpus)).first->second;
}

struct Question {
  GpuSet free;
  int count;
};

std::vector<Question> questions(int gpus) {
  Rng rng(42);
  std::vector<Question> list;
  for (int i = 0; i < 4096; ++i) {
    const auto free = static_cast<GpuSet>(rng.below(std::uint64_t{1} << gpus));
    list.push_back({free, 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(gpus)))});
  }
  return list;
}

void look_up(benchmark::State& state, Objective objective, int gpus) {
  const DeviceSets& sets = warm(gpus);
  benchmark::DoNotOptimize(sets.best(objective, sets.all(), gpus));  // the first question makes the table
  const std::vector<Question> asked = questions(gpus);
  std::size_t i = 0;
  for (auto _ : state) {
    const Question& question = asked[i++ % asked.size()];
    benchmark::DoNotOptimize(sets.best(objective, question.free, question.count));
  }
}

void remembered(benchmark::State& state, int gpus) {
  const std::vector<Question> asked = questions(gpus);
  const auto key = [](const Question& question) {
    return std::uint64_t{question.free} << 8 | static_cast<std::uint64_t>(question.count);
  };
  std::unordered_map<std::uint64_t, GpuSet> answers;
  for (const Question& question : asked) {
    answers[key(question)] = warm(gpus).best(Objective::kBottleneck, question.free, question.count);
  }
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(answers.find(key(asked[i++ % asked.size()]))->second);
}

void look_up_required(benchmark::State& state, int gpus) {
  const DeviceSets& sets = warm(gpus);
  benchmark::DoNotOptimize(sets.plugin());
  const std::vector<Question> asked = questions(gpus);
  std::size_t i = 0;
  for (auto _ : state) {
    const Question& question = asked[i++ % asked.size()];
    const GpuSet required = mortise::topology::lowest_gpu(question.free);
    benchmark::DoNotOptimize(sets.plugin().pick(question.free, required, question.count));
  }
}

void make_tables(benchmark::State& state, Objective objective, int gpus) {
  for (auto _ : state) benchmark::DoNotOptimize(make(gpus).best(objective, 1, 1));
}

}  // namespace

int main(int argc, char** argv) {
  for (const int gpus : {8, 16}) {
    benchmark::RegisterBenchmark(("remembered/" + std::to_string(gpus)).c_str(), remembered, gpus);
    for (const ObjectiveInfo& info : mortise::topology::objective_table()) {
      const std::string rest = std::string(info.name) + "/" + std::to_string(gpus);
      benchmark::RegisterBenchmark(("look_up/" + rest).c_str(), look_up, info.objective, gpus);
      benchmark::RegisterBenchmark(("make_tables/" + rest).c_str(), make_tables, info.objective, gpus)
          ->Unit(benchmark::kMicrosecond);
    }
    benchmark::RegisterBenchmark(("look_up_required/nvidia/" + std::to_string(gpus)).c_str(), look_up_required, gpus);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
