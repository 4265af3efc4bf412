#include "scheduler/topology/device_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/machine_matrices.h"

namespace mortise::topology {
namespace {

using test::alike;
using test::gpus;
using test::set_pairs;
using testing::HasSubstr;

DeviceSets sets_of(const PairMatrix& bandwidth, std::vector<int> nic_distance = {}) {
  Result<DeviceSets> sets = DeviceSets::of(bandwidth, PairMatrix(bandwidth.gpus), std::move(nic_distance));
  EXPECT_TRUE(sets) << sets.message();
  return *std::move(sets);
}

// GPUs 0 to 3 have 10 between each other, 3 and 4 have 100, all others 1.
PairMatrix quad_and_bridge() {
  PairMatrix matrix = alike(5, 1);
  set_pairs(matrix, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, 10);
  matrix.set(3, 4, 100);
  return matrix;
}

TEST(Objectives, AreKnownByName) {
  for (const ObjectiveInfo& info : objective_table()) {
    const Result<Objective> parsed = parse_objective(info.name);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, info.objective);
    EXPECT_EQ(name_of(info.objective), info.name);
  }
  const Result<Objective> wrong = parse_objective("speed");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.message(), "unknown objective 'speed'; known: bottleneck, ring, total, nvidia");
}

TEST(SetValues, OfTheCubeMeshAreThePublishedOnes) {
  const DeviceSets sets = sets_of(test::dgx1_volta());
  EXPECT_EQ(sets.value(0), (SetValue{0, 0, 0}));
  EXPECT_EQ(sets.value(gpus({5})), (SetValue{0, 0, 0}));
  EXPECT_EQ(sets.value(gpus({0, 3})), (SetValue{50, 50, 50}));
  EXPECT_EQ(sets.value(gpus({0, 2, 3})), (SetValue{25, 25, 125}));
  // 4 pairs inside the quad have 25 or 50: 3 x 25 + 3 x 50. The ring 0-1-2-3-0 needs 0-1, which has 25.
  EXPECT_EQ(sets.value(gpus({0, 1, 2, 3})), (SetValue{25, 25, 225}));
  // 0-3-2-1-5-6-7-4-0 has two NVLinks on every step, though other pairs have none: 8 x 50 + 8 x 25 + 12 x 9.
  EXPECT_EQ(sets.value(sets.all()), (SetValue{9, 50, 708}));
}

TEST(DeviceSets, ObjectivesDiffer) {
  const DeviceSets sets = sets_of(test::dgx1_volta());
  // A quad and one more have most in sum, but their ring has to leave the NVLinks.
  EXPECT_EQ(sets.best(Objective::kTotal, sets.all(), 5), gpus({0, 1, 2, 3, 4}));
  EXPECT_EQ(sets.value(gpus({0, 1, 2, 3, 4})), (SetValue{9, 9, 302}));
  EXPECT_EQ(sets.best(Objective::kRing, sets.all(), 5), gpus({0, 2, 3, 4, 7}));
  EXPECT_EQ(sets.value(gpus({0, 2, 3, 4, 7})), (SetValue{9, 25, 286}));
  // Any five have a pair without NVLink: the sum decides.
  EXPECT_EQ(sets.best(Objective::kBottleneck, sets.all(), 5), gpus({0, 1, 2, 3, 4}));
}

TEST(DeviceSets, OnlyFreeGpusAreTaken) {
  const DeviceSets sets = sets_of(test::dgx1_volta());
  EXPECT_EQ(sets.best(Objective::kTotal, gpus({0, 1, 6, 7}), 2), gpus({6, 7}));
  EXPECT_EQ(sets.best(Objective::kTotal, gpus({2, 7}), 2), gpus({2, 7}));
}

TEST(DeviceSets, ThereIsNoSetOfMoreThanTheFree) {
  const DeviceSets sets = sets_of(test::dgx1_volta());
  for (const ObjectiveInfo& info : objective_table()) {
    EXPECT_EQ(sets.best(info.objective, gpus({1, 2}), 3), 0U) << info.name;
    EXPECT_EQ(sets.best(info.objective, 0, 1), 0U) << info.name;
    for (const int count : {-1, 0, 9, 1000}) EXPECT_EQ(sets.best(info.objective, sets.all(), count), 0U) << info.name;
  }
}

TEST(DeviceSets, ASingleGpuLeavesTheBestPair) {
  PairMatrix matrix = alike(3, 20);
  matrix.set(0, 1, 300);
  EXPECT_EQ(sets_of(matrix).best(Objective::kBottleneck, 7, 1), gpus({2}));
}

TEST(DeviceSets, ALargerRestCountsBeforeASmallerOne) {
  // Without 4, what is left is the set of four with a bottleneck of 10, but the pair of 100 is gone. Without 0, the
  // four left have a bottleneck of 1, but a sum of 100 + 3 x 10 + 2 x 1 = 132 instead of 60.
  const DeviceSets sets = sets_of(quad_and_bridge());
  EXPECT_EQ(sets.best(Objective::kBottleneck, sets.all(), 1), gpus({4}));
  EXPECT_EQ(sets.best(Objective::kTotal, sets.all(), 1), gpus({0}));
  // Of four free GPUs none of the rests has four: pairs count.
  EXPECT_EQ(sets.best(Objective::kBottleneck, gpus({1, 2, 3, 4}), 1), gpus({1}));
}

TEST(DeviceSets, ARestOfEightCountsBeforeAllSmallerOnes) {
  // 0 to 7 have 10 between each other; 8 has 100 with 0 to 3, 1 with others.
  PairMatrix matrix = alike(9, 10);
  for (int gpu = 0; gpu < 8; ++gpu) matrix.set(8, gpu, gpu < 4 ? 100 : 1);
  EXPECT_EQ(sets_of(matrix).best(Objective::kBottleneck, 0x1ff, 1), gpus({8}));
}

TEST(DeviceSets, NearNicsDecideWhenBandwidthDoesNot) {
  const DeviceSets sets = sets_of(alike(4, 20), {3, 1, 2, 1});
  EXPECT_EQ(sets.best(Objective::kBottleneck, sets.all(), 2), gpus({1, 3}));
  EXPECT_EQ(sets.best(Objective::kRing, gpus({0, 1, 2}), 2), gpus({1, 2}));
}

TEST(DeviceSets, WhatIsLeftCountsBeforeNics) {
  PairMatrix matrix = alike(3, 20);
  matrix.set(0, 1, 300);
  const DeviceSets sets = sets_of(matrix, {0, 0, 5});
  EXPECT_EQ(sets.best(Objective::kTotal, sets.all(), 1), gpus({2}));
}

TEST(DeviceSets, TheFirstListDecidesAtLast) {
  const DeviceSets sets = sets_of(alike(16, 150));
  EXPECT_EQ(sets.best(Objective::kBottleneck, sets.all(), 4), gpus({0, 1, 2, 3}));
  EXPECT_EQ(sets.best(Objective::kRing, gpus({3, 5, 9, 15}), 3), gpus({3, 5, 9}));
  EXPECT_EQ(sets.best(Objective::kTotal, sets.all(), 16), sets.all());
  // {0,3} is before {1,2}, though it is the larger number.
  PairMatrix matrix = alike(4, 1);
  set_pairs(matrix, {{0, 3}, {1, 2}}, 5);
  EXPECT_EQ(sets_of(matrix).best(Objective::kTotal, 15, 2), gpus({0, 3}));
}

TEST(DeviceSets, SixteenGpusOfFourIslandsFillOneIsland) {
  PairMatrix matrix = alike(16, 16);
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < a; ++b) {
      if (a % 4 == b % 4) matrix.set(a, b, 300);
    }
  }
  const DeviceSets sets = sets_of(matrix);
  for (const ObjectiveInfo& info : objective_table().first(3)) {
    EXPECT_EQ(sets.best(info.objective, sets.all(), 4), gpus({0, 4, 8, 12})) << info.name;
    EXPECT_EQ(sets.best(info.objective, sets.all() & ~gpus({4, 5, 6}), 4), gpus({3, 7, 11, 15})) << info.name;
    // Two whole islands stay in any case, but taking from the broken one loses less of what is left.
    EXPECT_EQ(sets.best(info.objective, sets.all() & ~gpus({9}), 1), gpus({1})) << info.name;
  }
}

TEST(DeviceSets, AMachineWithoutGpusHasNoSets) {
  const DeviceSets sets = sets_of(PairMatrix(0));
  for (const ObjectiveInfo& info : objective_table()) EXPECT_EQ(sets.best(info.objective, 0, 1), 0U) << info.name;
  EXPECT_EQ(sets.value(0), SetValue{});
}

TEST(DeviceSets, TablesMayBeMadeByManyThreads) {
  const DeviceSets sets = sets_of(test::dgx1_volta());
  std::vector<GpuSet> found(8);
  std::vector<std::thread> threads;
  for (GpuSet& set : found) {
    threads.emplace_back([&] { set = sets.best(Objective::kRing, sets.all(), 5); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, std::vector<GpuSet>(8, gpus({0, 2, 3, 4, 7})));
}

std::string refusal(PairMatrix bandwidth, PairMatrix scores, std::vector<int> nics = {}) {
  const Result<DeviceSets> sets = DeviceSets::of(std::move(bandwidth), std::move(scores), std::move(nics));
  return sets ? "accepted" : sets.message();
}

TEST(DeviceSets, WhatCannotBeTabulatedIsRefused) {
  EXPECT_EQ(refusal(alike(17, 1), alike(17, 1)), "bandwidth: 17 GPUs; device sets are made for 0 to 16");
  EXPECT_EQ(refusal(alike(4, 1), alike(5, 1)), "plugin scores of 5 GPUs beside the bandwidth of 4");
  EXPECT_EQ(refusal(alike(4, 1), alike(4, 1), {1, 2}), "2 NIC distances for 4 GPUs; allowed is none or one per GPU");
  EXPECT_EQ(refusal(alike(1, 1), alike(1, 1), {-1}), "NIC distance -1; allowed is 0 to 1000000");
  EXPECT_THAT(refusal(alike(3, 20'000'000), alike(3, 1)), HasSubstr("GPUs 0 and 1 have 20000000; allowed is 0 to"));
  EXPECT_THAT(refusal(alike(3, 1), alike(3, -1)), HasSubstr("plugin scores: GPUs 0 and 1 have -1"));
  PairMatrix odd = alike(3, 1);
  odd.values[1] = 2;
  EXPECT_EQ(refusal(odd, alike(3, 1)), "bandwidth: GPUs 0 and 1 differ by direction");
  PairMatrix self = alike(3, 1);
  self.values[4] = 2;
  EXPECT_EQ(refusal(self, alike(3, 1)), "bandwidth: GPU 1 has a value to itself; allowed is 0");
  PairMatrix cut = alike(3, 1);
  cut.values.pop_back();
  EXPECT_EQ(refusal(cut, alike(3, 1)), "bandwidth: 8 values for 3 GPUs; one per pair and direction is 9");
}

}  // namespace
}  // namespace mortise::topology
