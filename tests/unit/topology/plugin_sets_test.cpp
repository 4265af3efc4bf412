#include "scheduler/topology/plugin_sets.h"

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <vector>

#include "tests/support/machine_matrices.h"

namespace mortise::topology {

void PrintTo(const PluginPick& pick, std::ostream* out) {
  *out << (pick.fails ? "fails" : "set ") << std::hex << pick.set;
}

namespace {

using test::alike;
using test::gpus;
using test::set_pairs;

PluginSets sets_of(const PairMatrix& scores) {
  return PluginSets(SetValues(scores));
}

PluginPick picked(std::initializer_list<int> members) {
  return {gpus(members), false};
}

constexpr PluginPick kNothing{};
constexpr PluginPick kFails{0, true};

TEST(PluginSets, ThePickLeavesWhatMakesTheWholeDivisionBest) {
  const PluginSets sets = sets_of(test::dgx1_volta_scores());
  EXPECT_EQ(sets.pick(gpus({0, 1, 2, 3, 4, 5, 6, 7}), 2), picked({0, 3}));
  EXPECT_EQ(sets.pick(gpus({0, 1, 2, 3, 4, 5, 6, 7}), 4), picked({0, 1, 2, 3}));
  // go-gpuallocator's own tests of its policy.
  EXPECT_EQ(sets.pick(gpus({0, 2, 4, 5}), 2), picked({4, 5}));
  EXPECT_EQ(sets.pick(gpus({0, 1, 4}), 2), picked({0, 4}));
  EXPECT_EQ(sets.pick(gpus({3, 4, 5, 6, 7}), 1), picked({3}));
}

TEST(PluginSets, ABetterSetIsGivenUpForTheRest) {
  // Six GPUs in one socket, two in the other. {1,2,3,4} has 30+30+4x20 = 140, more than {0,1,2,5} with 30+5x20 = 130;
  // but what is left has {0,5,6,7}: 20+30+4x10 = 90 against {3,4,6,7}: 30+30+4x10 = 100. Both make 230, and the
  // division whose first part is {0,1,2,5} is met before the one with {0,5,6,7}.
  PairMatrix scores = alike(8, 20);
  for (const int far : {6, 7}) {
    for (int gpu = 0; gpu < 6; ++gpu) scores.set(far, gpu, 10);
  }
  set_pairs(scores, {{1, 2}, {3, 4}, {6, 7}}, 30);
  EXPECT_EQ(sets_of(scores).pick(0xff, 4), picked({0, 1, 2, 5}));
}

TEST(PluginSets, RequiredGpusAreInTheSet) {
  const PluginSets sets = sets_of(test::dgx1_volta_scores());
  EXPECT_EQ(sets.pick(0xff, gpus({4}), 1), picked({4}));
  EXPECT_EQ(sets.pick(0xff, gpus({4}), 2), picked({4, 7}));
  EXPECT_EQ(sets.pick(0xff, gpus({4}), 4), picked({4, 5, 6, 7}));
  EXPECT_EQ(sets.pick(0xff, gpus({0, 2, 4, 6}), 4), picked({0, 2, 4, 6}));
}

TEST(PluginSets, ImpossibleQuestionsHaveNoAnswer) {
  const PluginSets sets = sets_of(test::dgx1_volta_scores());
  EXPECT_EQ(sets.pick(0, 1), kNothing);
  EXPECT_EQ(sets.pick(0xff, 0), kNothing);
  EXPECT_EQ(sets.pick(0xff, -3), kNothing);
  EXPECT_EQ(sets.pick(0xff, 9), kNothing);
  EXPECT_EQ(sets.pick(0xff, gpus({1, 2, 3}), 2), kNothing);
  EXPECT_EQ(sets.pick(0xfe, gpus({0, 1, 2, 3}), 4), kNothing) << "one of the required is not free";
  EXPECT_TRUE(sets.outcomes(0xff, 0, 9).sets.empty());
  EXPECT_TRUE(sets.outcomes(0xfe, gpus({0}), 2).sets.empty());
}

TEST(PluginSets, PaddingThatScoresHighestFails) {
  // {0,1,2,3} has 6 x 20; {4,5} filled up has 1210: 1330 in sum. With the bridge in a set of four it is at most
  // 1210 + 20 + 4 x 10, and 20 for the other two: 1290. So the set with padding is the highest of the best division.
  PairMatrix scores = alike(6, 10);
  set_pairs(scores, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, 20);
  scores.set(4, 5, 1210);
  const PluginSets sets = sets_of(scores);
  EXPECT_EQ(sets.pick(0x3f, 4), kFails);
  const PluginOutcomes outcomes = sets.outcomes(0x3f, 0, 4);
  EXPECT_TRUE(outcomes.may_fail);
  EXPECT_TRUE(outcomes.sets.empty());
  EXPECT_EQ(sets.pick(0x3f, gpus({0}), 4), picked({0, 1, 2, 3})) << "the filled-up set does not hold GPU 0";
}

TEST(PluginSets, OutcomesHoldWhatAnyOrderOfTheFreeGpusLeadsTo) {
  // Two divisions of the mesh into pairs have 920: 03 12 47 56 with 230 each, and 04 15 with 210, 23 67 with 250.
  // Of the second, only the pairs of 250 are taken.
  const PluginSets sets = sets_of(test::dgx1_volta_scores());
  const PluginOutcomes outcomes = sets.outcomes(0xff, 0, 2);
  EXPECT_EQ(outcomes.sets,
            (std::vector<GpuSet>{gpus({0, 3}), gpus({1, 2}), gpus({2, 3}), gpus({4, 7}), gpus({5, 6}), gpus({6, 7})}));
  EXPECT_FALSE(outcomes.may_fail);
  EXPECT_EQ(sets.outcomes(0xff, gpus({4}), 2).sets, (std::vector<GpuSet>{gpus({0, 4}), gpus({4, 7})}));
}

TEST(PluginSets, OutcomesCountEveryBestDivisionOfTheRest) {
  // 65 with {4,5} next to 20 + 20, or next to 10 + 30: {4,5} is the highest of the first division, {1,3} (in the other
  // arrangement {2,3}) of the second.
  PairMatrix scores(6);
  scores.set(4, 5, 25);
  set_pairs(scores, {{0, 1}, {2, 3}}, 20);
  scores.set(0, 2, 10);
  scores.set(1, 3, 30);
  EXPECT_EQ(sets_of(scores).outcomes(0x3f, 0, 2).sets, (std::vector<GpuSet>{gpus({1, 3}), gpus({4, 5})}));
  set_pairs(scores, {{0, 2}, {1, 3}}, 20);
  scores.set(0, 1, 10);
  scores.set(2, 3, 30);
  EXPECT_EQ(sets_of(scores).outcomes(0x3f, 0, 2).sets, (std::vector<GpuSet>{gpus({2, 3}), gpus({4, 5})}));
}

TEST(PluginSets, GpusWithoutScoresNeverFail) {
  const PluginOutcomes outcomes = sets_of(PairMatrix(3)).outcomes(7, 0, 2);
  EXPECT_EQ(outcomes.sets, (std::vector<GpuSet>{gpus({0, 1}), gpus({0, 2}), gpus({1, 2})}));
  EXPECT_FALSE(outcomes.may_fail);
}

TEST(PluginSets, ManyPairsAreOverwrittenAsInThePolicy) {
  // The best division joins 10 and 11, but of its last two pairs the policy only remembers those it tried last,
  // {10,13} and {11,12}: all pairs score 10 then, and the first one is taken.
  PairMatrix scores = alike(14, 10);
  scores.set(10, 11, 250);
  const PluginSets sets = sets_of(scores);
  EXPECT_EQ(sets.pick(0x3fff, 2), picked({0, 1}));
  EXPECT_EQ(sets.pick(0x3fff, gpus({10}), 2), picked({10, 13}));
  EXPECT_EQ(sets.pick(0x0fff, 2), picked({10, 11})) << "six pairs are not overwritten";
  EXPECT_EQ(sets.outcomes(0x3fff, gpus({10}), 2).sets.size(), 13U) << "the order decides: any pair";
}

struct Answer {
  int gpus;
  GpuSet taken;
  GpuSet required;
  int count;
  GpuSet picked;
};

TEST(PluginSets, LargeMachinesGetWhatThePolicyItselfAnswers) {
  // Answers of go-gpuallocator v0.6.0, run on GPUs with links that have these scores.
  constexpr std::array<int, 11> kScores{10, 10, 20, 110, 10, 210, 30, 10, 250, 20, 40};
  const std::vector<Answer> answers{
      {9, 0, 0, 2, gpus({3, 5})},
      {9, 0, 0, 4, gpus({0, 1, 6, 8})},
      {10, 0, gpus({7}), 3, gpus({4, 7, 9})},
      {10, 0, 0, 4, gpus({0, 1, 6, 8})},
      {11, gpus({3}), 0, 5, gpus({0, 1, 2, 6, 8})},
      {12, 0, 0, 4, gpus({0, 1, 5, 10})},
      {12, 0, gpus({5, 9}), 4, gpus({3, 4, 5, 9})},
      {12, gpus({0}), 0, 3, gpus({4, 7, 9})},
      {13, 0, 0, 2, gpus({0, 1})},
      {14, 0, 0, 2, gpus({0, 1})},
      {14, 0, gpus({13}), 2, gpus({2, 13})},
      {15, 0, 0, 2, gpus({5, 14})},
      {14, 0, 0, 6, gpus({0, 1, 6, 8, 11, 12})},
      {16, 0, 0, 7, gpus({0, 1, 6, 8, 10, 11, 12})},
      {16, 0, 0, 8, gpus({0, 1, 2, 6, 8, 10, 11, 12})},
      {16, 0, gpus({2, 15}), 8, gpus({2, 3, 4, 5, 7, 9, 14, 15})},
      {16, gpus({1, 4}), 0, 10, gpus({0, 2, 3, 5, 6, 8, 10, 11, 12, 13})},
      {16, 0, 0, 12, gpus({0, 1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13})},
  };
  PairMatrix scores(16);
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < a; ++b) scores.set(a, b, kScores[static_cast<std::size_t>((3 * a * b + 5 * (a + b)) % 11)]);
  }
  const PluginSets sets = sets_of(scores);
  for (const Answer& answer : answers) {
    const GpuSet free = (gpu_bit(answer.gpus) - 1) & ~answer.taken;
    EXPECT_EQ(sets.pick(free, answer.required, answer.count), (PluginPick{answer.picked, false}))
        << answer.gpus << " / " << answer.count;
  }
}

}  // namespace
}  // namespace mortise::topology
