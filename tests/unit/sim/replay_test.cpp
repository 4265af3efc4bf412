#include "sim/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/sim/small_world.h"

namespace mortise::sim {
namespace {

using testing::HasSubstr;

kube::ClusterFile cluster_of(std::vector<placement::NodeSpec> nodes) {
  kube::ClusterFile file;
  file.nodes = std::move(nodes);
  return file;
}

TEST(Replay, PlacesPodsInArrivalOrderAndNeverRetriesAFailedOne) {
  const auto cluster = cluster_of({make_node("n", 2)});
  const Workload workload = make_workload({make_pod("big", 2, 1000), make_pod("one", 1, 1000), make_pod("cpu", 0, 0)});
  const ArrivalPlan arrival = arrive_in_order("one\nbig\ncpu\none\none\n");
  std::ostringstream placements;
  ReplayHooks hooks;
  hooks.placements = &placements;
  const auto run = replay({cluster, nullptr, workload, arrival, "best-fit", 7}, hooks);
  ASSERT_TRUE(run) << run.message();
  EXPECT_EQ(placements.str(),
            "one n 0\n"
            "big FAIL InsufficientGpu -\n"
            "cpu n -\n"
            "one-clone-1 n 1\n"
            "one-clone-2 FAIL InsufficientGpu -\n");
  EXPECT_EQ(run->trace, "small");
  EXPECT_EQ(run->policy, "best-fit");
  EXPECT_EQ(run->seed, 7U);
  EXPECT_EQ(run->arrival, "order:order.txt");
  EXPECT_EQ(run->nodes, 1);
  EXPECT_EQ(run->gpus, 2);
  EXPECT_EQ(run->pods_arrived, 5);
  EXPECT_EQ(run->pods_placed, 3);
  EXPECT_EQ(run->pods_failed, 2);
  EXPECT_EQ(run->pods_pending, 0);
  EXPECT_DOUBLE_EQ(run->allocation_pct, 100);
  EXPECT_FALSE(run->frag_pct_of_idle.has_value());
  EXPECT_DOUBLE_EQ(run->frag_pct_of_capacity, 0);
  // Failed pods count as arrived demand: 1 + 2 + 0 + 1 + 1 GPUs on 2.
  ASSERT_EQ(run->curve.size(), 251U);
  EXPECT_DOUBLE_EQ(*run->curve[50].allocation_pct, 50);
  EXPECT_DOUBLE_EQ(*run->curve[150].allocation_pct, 50);  // big, then the CPU pod, in one bin
}

TEST(Replay, TypicalPodsAreThoseOfTheWholeTraceNotOfTheArrivals) {
  // Typical: half the pods ask for 400 milli, half for a whole GPU. With 600 milli left the first kind can use all of
  // them and the second none: F is half of 600, 300 milli, which is 50 % of idle and 30 % of capacity. Of the arrivals
  // alone (only the first kind) F would be 0.
  const auto cluster = cluster_of({make_node("n", 1)});
  const Workload workload = make_workload({make_pod("part", 1, 400), make_pod("whole", 1, 1000)});
  const auto run = replay({cluster, nullptr, workload, arrive_in_order("part\n"), "fgd", 1});
  ASSERT_TRUE(run) << run.message();
  ASSERT_TRUE(run->frag_pct_of_idle.has_value());
  EXPECT_DOUBLE_EQ(*run->frag_pct_of_idle, 50);
  EXPECT_DOUBLE_EQ(run->frag_pct_of_capacity, 30);
  EXPECT_DOUBLE_EQ(run->allocation_pct, 40);
}

TEST(Replay, RanksDecideBetweenEqualNodes) {
  const auto cluster = cluster_of({make_node("a", 1), make_node("b", 1), make_node("c", 1)});
  const kube::NodeRanks ranks = {{"a", 2}, {"b", 0}, {"c", 1}};
  const Workload workload = make_workload({make_pod("p", 1, 1000)});
  std::ostringstream placements;
  ReplayHooks hooks;
  hooks.placements = &placements;
  const auto run = replay({cluster, &ranks, workload, arrive_in_order("p\np\np\n"), "first-fit", 1}, hooks);
  ASSERT_TRUE(run) << run.message();
  EXPECT_EQ(placements.str(), "p b 0\np-clone-1 c 0\np-clone-2 a 0\n");
}

TEST(Replay, AModelListKeepsPodsOffOtherModels) {
  auto other = make_node("other", 1);
  other.model = "P100";
  const auto cluster = cluster_of({other});
  auto pod = make_pod("p", 1, 1000);
  pod.gpu_spec = "T4|A10";
  const Workload workload = make_workload({pod});
  std::ostringstream placements;
  ReplayHooks hooks;
  hooks.placements = &placements;
  ASSERT_TRUE(replay({cluster, nullptr, workload, arrive_in_order("p\n"), "fgd", 1}, hooks));
  EXPECT_EQ(placements.str(), "p FAIL GpuModel -\n");
}

TEST(Replay, ArrivalsOfASeedAreTheSameForEveryPolicy) {
  const ClusterInput cluster = make_small_cluster();
  const TraceInput trace = make_small_trace();
  const auto names_under = [&](const std::string& policy) {
    std::ostringstream placements;
    ReplayHooks hooks;
    hooks.placements = &placements;
    EXPECT_TRUE(replay({cluster.file, nullptr, trace.workload, arrive_inflated(1.3), policy, 42}, hooks));
    std::vector<std::string> names;
    std::istringstream lines(placements.str());
    for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find(' ')));
    return names;
  };
  const auto names = names_under("fgd");
  EXPECT_GT(names.size(), 20U);
  EXPECT_EQ(names, names_under("random"));
  EXPECT_EQ(names, names_under("gpu-packing"));
}

TEST(Replay, AClusterWithoutGpusIsRefused) {
  const auto cluster = cluster_of({make_node("n", 0)});
  const Workload workload = make_workload({make_pod("p", 1, 1000)});
  const auto run = replay({cluster, nullptr, workload, arrive_in_order("p\n"), "fgd", 1});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.message(), HasSubstr("no GPU"));
}

TEST(Replay, AnUnknownPolicyIsRefusedWithTheKnownNames) {
  const auto cluster = cluster_of({make_node("n", 1)});
  const Workload workload = make_workload({make_pod("p", 1, 1000)});
  const auto run = replay({cluster, nullptr, workload, arrive_in_order("p\n"), "best", 1});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.message(), HasSubstr("best-fit"));
}

TEST(Workload, KeepsEachDistinctRequestOnce) {
  auto picky = make_pod("c", 1, 1000);
  picky.gpu_spec = "T4";
  const Workload workload =
      make_workload({make_pod("a", 1, 1000), make_pod("b", 1, 1000), picky, make_pod("d", 0, 0), make_pod("e", 0, 0)});
  EXPECT_EQ(workload.requests().size(), 3U);
  EXPECT_EQ(workload.classes().size(), 5U);
  EXPECT_EQ(workload.request_of(0), workload.request_of(1));
  EXPECT_NE(workload.request_of(0), workload.request_of(2));
  EXPECT_EQ(workload.request_of(3), workload.request_of(4));
}

}  // namespace
}  // namespace mortise::sim
