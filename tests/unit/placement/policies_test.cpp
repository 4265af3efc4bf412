#include <gtest/gtest.h>

#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policies/published.h"
#include "scheduler/placement/policy.h"

namespace mortise::placement {
namespace {

// A node of the study's size: 96 cores, 8 GPUs, with the given milli-GPU left.
struct Node {
  Machine machine{96000, 384 * 1024 * kMiB, 1001, 8, ModelId{0}, true};
  NodeState state;

  explicit Node(std::initializer_list<std::int16_t> free, MilliCpu cpu_free = 96000, GpuPodKinds kinds = 0) {
    state.cpu_free = cpu_free;
    state.pods_free = 1001;
    state.devices = static_cast<std::uint8_t>(free.size());
    std::copy(free.begin(), free.end(), state.free.begin());
    state.kinds = kinds;
  }
  Candidate candidate() const { return {state, machine}; }
};

PodShape shape(MilliCpu cpu, int gpus, MilliGpu milli = kWholeGpu) {
  return {cpu, 0, gpus, gpus > 0 ? milli : 0, {}};
}

std::unique_ptr<Policy> policy(std::string_view spelling, const TypicalPods& typical = {}) {
  auto made = make_policy(spelling, typical);
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

TEST(DotProduct, ScoresByAlignmentBeforePlacement) {
  // 100 (1 - (96000/128000 * 32000/128000 + 8000/8000 * 2000/8000) / 2) = 100 (1 - (0.1875 + 0.25) / 2) = 78.125
  const Node idle({1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_EQ(policy("dot-product")->score(idle.candidate(), shape(32000, 2)), published_score(78));
}

TEST(BestFit, ScoresByWhatIsLeftAfterPlacement) {
  // 100 (1 - (0.5 * 64000/128000 + 0.5 * 6000/8000)) = 100 (1 - 0.625) = 37.5
  const Node idle({1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  EXPECT_EQ(policy("best-fit")->score(idle.candidate(), shape(32000, 2)), published_score(37));
}

TEST(BestFit, KeepsTheOrderOnNodesLargerThanTheStudys) {
  Node large({1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}, 256000);
  Node fuller({0, 1000, 1000, 1000, 1000, 1000, 1000, 1000}, 248000);
  EXPECT_LT(policy("best-fit")->score(large.candidate(), shape(1000, 1)),
            policy("best-fit")->score(fuller.candidate(), shape(1000, 1)));
}

TEST(GpuClustering, PrefersTheSameKindThenMixedThenEmpty) {
  const auto clustering = policy("gpu-clustering");
  // Fullness: 25 * (8000 - 2000) / 8000 = 18.
  const Node same({0, 0, 0, 0, 0, 0, 1000, 1000}, 96000, 0b100);
  const Node mixed({0, 0, 0, 0, 0, 0, 1000, 1000}, 96000, 0b110);
  const Node other({0, 0, 0, 0, 0, 0, 1000, 1000}, 96000, 0b010);
  const Node empty({1000, 1000}, 96000, 0);
  EXPECT_EQ(clustering->score(same.candidate(), shape(1000, 2)), published_score(18 + 75));
  EXPECT_EQ(clustering->score(mixed.candidate(), shape(1000, 2)), published_score(18 + 50));
  EXPECT_EQ(clustering->score(other.candidate(), shape(1000, 2)), published_score(18));
  EXPECT_EQ(clustering->score(empty.candidate(), shape(1000, 2)), published_score(18 + 25));
  EXPECT_EQ(clustering->score(same.candidate(), shape(1000, 0)), published_score(0));
}

TEST(GpuPacking, ThreeTiers) {
  const auto packing = policy("gpu-packing");
  const Node idle8({1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  const Node idle2({1000, 1000});
  EXPECT_EQ(packing->score(idle8.candidate(), shape(1000, 1)), published_score(25));  // 33 - 8
  EXPECT_EQ(packing->score(idle2.candidate(), shape(1000, 1)), published_score(31));  // 33 - 2
  const Node used({500, 1000, 1000});
  EXPECT_EQ(packing->score(used.candidate(), shape(1000, 2)), published_score(48));       // 50 - 2 free GPUs taken
  EXPECT_EQ(packing->score(used.candidate(), shape(1000, 1, 300)), published_score(95));  // 100 - (500 / 10) / 10
}

TEST(DefaultShareDevice, TakesTheSmallestSufficientRest) {
  const Node node({1000, 400, 300, 300});
  EXPECT_EQ(policy("best-fit")->share_device(node.candidate(), shape(0, 1, 250), 0), 2);
  EXPECT_EQ(policy("best-fit")->share_device(node.candidate(), shape(0, 1, 350), 0), 1);
}

TEST(MakePolicy, ErrorsNameWhatIsKnown) {
  EXPECT_EQ(make_policy("x", {}).message(),
            "unknown policy 'x'; known: random, first-fit, best-fit, dot-product, gpu-packing, gpu-clustering, fgd, "
            "topology");
  EXPECT_NE(make_policy("fgd:tie=least", {}).message().find("tie='least'; allowed: rank, best-fit, random"),
            std::string::npos);
  EXPECT_NE(make_policy("fgd:step=0", {}).message().find("allowed: 1..100000"), std::string::npos);
  EXPECT_NE(make_policy("best-fit:tie=rank", {}).message().find("unknown or repeated option 'tie'"), std::string::npos);
  EXPECT_NE(make_policy("fgd:tie", {}).message().find("'tie' is not of the form option=value"), std::string::npos);
  EXPECT_FALSE(make_policy("", {}).ok());
  EXPECT_FALSE(make_policy("fgd+", {}).ok());
  EXPECT_FALSE(make_policy("0*fgd", {}).ok());
  EXPECT_FALSE(make_policy("fgd:tie=rank:tie=rank", {}).ok());
}

TEST(WeightedSum, IsTheWeightedMeanAndTiesAsTheFirst) {
  const Node idle({1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  const Score best = policy("best-fit")->score(idle.candidate(), shape(32000, 2));
  const Score dot = policy("dot-product")->score(idle.candidate(), shape(32000, 2));
  EXPECT_EQ(policy("best-fit+3*dot-product")->score(idle.candidate(), shape(32000, 2)), (best + 3 * dot) / 4);
  EXPECT_EQ(policy("random+best-fit")->tie_rule(), TieRule::kRandom);
  EXPECT_EQ(policy("best-fit+random")->tie_rule(), TieRule::kRank);
}

TEST(TypicalPods, KeepsTheMostFrequentClassesUpTo95Percent) {
  ClusterState cluster;
  // 100 pods: 60 of one class, 34 of another, 6 single ones. After two classes 94 are covered, less than 95, so the
  // largest of the single ones (by CPU) is kept too: 3 classes, 95 pods.
  std::vector<PodClass> pods(60, PodClass{4000, 1000, 1, "", {}});
  pods.insert(pods.end(), 34, PodClass{0, 0, 0, "", {}});
  for (int i = 1; i <= 6; ++i) pods.push_back({1000 * i, 500, 1, "", {}});
  const TypicalPods typical(pods, cluster);
  ASSERT_EQ(typical.classes().size(), 3U);
  EXPECT_EQ(typical.classes()[0].cpu, 4000);
  EXPECT_DOUBLE_EQ(typical.classes()[0].weight, 60.0 / 95.0);
  EXPECT_EQ(typical.classes()[1].cpu, 100) << "no CPU request counts as 100m";
  EXPECT_EQ(typical.classes()[2].cpu, 6000);
}

TEST(Fragmentation, OneNodeByHand) {
  ClusterState cluster;
  // Half the pods ask for 2 whole GPUs, half for 400 milli of one; 1 core each.
  std::vector<PodClass> pods(50, PodClass{1000, 1000, 2, "", {}});
  pods.insert(pods.end(), 50, PodClass{1000, 400, 1, "", {}});
  FragmentationModel model(TypicalPods(pods, cluster));
  const std::array<std::int16_t, 3> free{1000, 300, 500};
  // 2 GPUs: only one is free, all 1800 are lost. 400 milli: fits, but the 300 are lost. 0.5 * 1800 + 0.5 * 300.
  EXPECT_DOUBLE_EQ(model.amount(4000, free, ModelId{0}), 1050);
  // Without CPU nothing can be used.
  EXPECT_DOUBLE_EQ(model.amount(999, free, ModelId{0}), 1800);
}

TEST(Fragmentation, ModelsThatAreNotAllowedLoseAll) {
  ClusterState cluster;
  const std::vector<PodClass> pods(10, PodClass{1000, 1000, 1, "A100", {"A100"}});
  FragmentationModel model(TypicalPods(pods, cluster));
  const std::array<std::int16_t, 1> free{1000};
  EXPECT_DOUBLE_EQ(model.amount(4000, free, cluster.intern_model("A100")), 0);
  EXPECT_DOUBLE_EQ(model.amount(4000, free, cluster.intern_model("T4")), 1000);
}

TEST(Fgd, APodThatAsksForNothingScoresAsPublished) {
  const Node idle({1000});
  EXPECT_EQ(policy("fgd")->score(idle.candidate(), shape(0, 0)), published_score(100));
}

TEST(Engine, AFailedPlanNamesTheMostFrequentReason) {
  ClusterState cluster;
  ASSERT_TRUE(cluster.add_node({"cpu0", 8000, kMiB, 10, 0, "", true}, 0).ok());
  ASSERT_TRUE(cluster.add_node({"cpu1", 8000, kMiB, 10, 0, "", true}, 1).ok());
  ASSERT_TRUE(cluster.add_node({"gpu", 8000, kMiB, 10, 2, "T4", true}, 2).ok());
  Engine engine(cluster, policy("best-fit"), 1);
  PodRequest pod;
  pod.gpus = 4;
  const Decision decision = engine.plan(pod);
  ASSERT_TRUE(std::holds_alternative<Rejected>(decision));
  EXPECT_EQ(std::get<Rejected>(decision).main_reason, Reason::kNoGpu);
  EXPECT_EQ(engine.reasons(pod)[static_cast<std::size_t>(Reason::kTooFewGpus)], 1);
}

TEST(Engine, ABlockedNodeTakesNoGpuPodsButOthers) {
  ClusterState cluster;
  NodeSpec spec{"n", 8000, kMiB, 10, 2, "T4", true};
  spec.blocked = true;
  ASSERT_TRUE(cluster.add_node(spec, 0).ok());
  Engine engine(cluster, policy("best-fit"), 1);
  PodRequest pod;
  EXPECT_TRUE(std::holds_alternative<Placed>(engine.plan(pod)));
  pod.gpus = 1;
  EXPECT_EQ(std::get<Rejected>(engine.plan(pod)).main_reason, Reason::kNodeBlocked);
  EXPECT_FALSE(is_unresolvable(Reason::kNodeBlocked)) << "removing the pod in question would help";
}

TEST(Engine, ForgetsAndRebuildsRareShapes) {
  ClusterState cluster;
  ASSERT_TRUE(cluster.add_node({"n", 1'000'000, 1024 * kMiB, 10000, 8, "T4", true}, 0).ok());
  Engine engine(cluster, policy("fgd"), 1);
  for (int round = 0; round < 2; ++round) {
    for (int cpu = 0; cpu < 3000; ++cpu) {
      PodRequest pod;
      pod.cpu = cpu;
      ASSERT_TRUE(std::holds_alternative<Placed>(engine.plan(pod)));
    }
  }
}

}  // namespace
}  // namespace mortise::placement
