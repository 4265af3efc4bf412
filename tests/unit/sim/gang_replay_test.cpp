// Gangs of a trace in a replay. What is right follows from clusters small enough to see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/cluster_domains.h"
#include "sim/compare.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "tests/unit/sim/small_world.h"
#include "traces/openb.h"

namespace mortise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kRackLabel = "topology.kubernetes.io/rack";

/// Nodes "NAME" of so many GPUs in racks; an empty rack is no label.
struct Placed {
  std::string name;
  std::int32_t gpus;
  std::string rack;
};

ClusterInput cluster_of(const std::vector<Placed>& nodes) {
  ClusterInput cluster;
  for (const Placed& node : nodes) {
    cluster.file.nodes.push_back(make_node(node.name, node.gpus));
    cluster.file.labels.emplace_back();
    if (!node.rack.empty()) cluster.file.labels.back()[kRackLabel] = node.rack;
  }
  return cluster;
}

Workload workload_of(const std::string& rows) {
  std::istringstream in("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gang_size,gang,role,topology_required\n" + rows);
  auto trace = traces::read_openb(in, "jobs.csv");
  EXPECT_TRUE(trace) << trace.message();
  return Workload(*std::move(trace));
}

struct Outcome {
  Result<ReplayResult> run;
  std::string placements;
};

Outcome run_on(const ClusterInput& cluster, const Workload& workload, const ArrivalPlan& arrival,
               const std::string& policy = "best-fit") {
  kube::NodeRanks ranks;  // the order of the nodes
  for (const auto& node : cluster.file.nodes) ranks.emplace(node.name, ranks.size());
  std::ostringstream placements;
  ReplayHooks hooks;
  hooks.placements = &placements;
  auto run = replay({cluster.file, &ranks, workload, arrival, policy, 1, cluster.levels}, hooks);
  return {std::move(run), placements.str()};
}

TEST(GangReplay, AllMembersArePlacedInOneDecisionOrNobodyIs) {
  // Two nodes of 2 GPUs: three members of one GPU fit, then two of the next gang do not, though one of them would.
  const ClusterInput cluster = cluster_of({{"a", 2, ""}, {"b", 2, ""}});
  const Workload workload = workload_of("g,100,1,1,1000,3,,,\nh,100,1,1,1000,2,,,\np,100,1,1,1000,1,,,\n");
  const Outcome outcome = run_on(cluster, workload, arrive_in_order("g\nh\np\n"));
  ASSERT_TRUE(outcome.run) << outcome.run.message();
  EXPECT_EQ(outcome.placements,
            "g-0 a 0\n"
            "g-1 a 1\n"
            "g-2 b 0\n"
            "h-0 FAIL GangNoRoom -\n"
            "h-1 FAIL GangNoRoom -\n"
            "p b 1\n");
  EXPECT_EQ(outcome.run->pods_arrived, 6);
  EXPECT_EQ(outcome.run->pods_placed, 4);
  EXPECT_EQ(outcome.run->pods_failed, 2);
  ASSERT_TRUE(outcome.run->gangs.has_value());
  EXPECT_EQ(outcome.run->gangs->arrived, 2);
  EXPECT_EQ(outcome.run->gangs->placed, 1);
  EXPECT_EQ(outcome.run->gangs->failed, 1);
  // Demand counts whole, that of the gang that failed too: 3 + 2 + 1 GPUs on 4 are 150 %. It arrives at once, so there
  // is a value at 75 % and none at 25 %.
  ASSERT_EQ(outcome.run->curve.size(), 151U);
  EXPECT_EQ(outcome.run->curve[75].allocation_pct, 75);
  EXPECT_EQ(outcome.run->curve[25].allocation_pct, std::nullopt);
}

// scheduler-plugins#114: two nodes of 8 GPUs, two gangs of ten pods: the first one runs whole, the second holds
// nothing, a third of six takes the rest.
TEST(GangReplay, Sp114AGangThatFailsHoldsNothing) {
  const ClusterInput cluster = cluster_of({{"a", 8, ""}, {"b", 8, ""}});
  const Workload workload = workload_of("g1,100,1,1,1000,10,,,\ng2,100,1,1,1000,10,,,\ng3,100,1,1,1000,6,,,\n");
  const Outcome outcome = run_on(cluster, workload, arrive_in_order("g1\ng2\ng3\n"));
  ASSERT_TRUE(outcome.run) << outcome.run.message();
  EXPECT_EQ(outcome.run->gangs->placed, 2);
  EXPECT_EQ(outcome.run->pods_placed, 16);
  EXPECT_DOUBLE_EQ(outcome.run->allocation_pct, 100);
}

// scheduler-plugins#429: 6, 2, 2 and 2 GPUs are 12 in sum, but of three pods of 4 only one fits. The 2-GPU pod that
// came after it starts at once.
TEST(GangReplay, Sp429SumsDoNotAdmitAGangAndWhatComesNextIsNotHeldUp) {
  const ClusterInput cluster = cluster_of({{"a", 6, ""}, {"b", 2, ""}, {"c", 2, ""}, {"d", 2, ""}});
  const Workload workload = workload_of("g,100,1,4,1000,3,,,\np,100,1,2,1000,1,,,\n");
  const Outcome outcome = run_on(cluster, workload, arrive_in_order("g\np\n"));
  ASSERT_TRUE(outcome.run) << outcome.run.message();
  EXPECT_EQ(outcome.run->gangs->failed, 1);
  EXPECT_THAT(outcome.placements, HasSubstr("g-0 FAIL GangNeverFits -\n"));
  EXPECT_THAT(outcome.placements, testing::EndsWith("p b 0,1\n"));
}

TEST(GangReplay, ARequiredLevelKeepsAGangInOneRack) {
  // Only one rack has three nodes. The second gang would find three nodes too, but not in one rack.
  const ClusterInput cluster =
      cluster_of({{"a", 2, "r1"}, {"b", 2, "r1"}, {"c", 2, "r2"}, {"d", 2, "r2"}, {"e", 2, "r2"}, {"f", 2, "r3"}});
  const Workload workload = workload_of("g,100,1,2,1000,3,,,rack\n");
  const Outcome outcome = run_on(cluster, workload, arrive_in_order("g\ng\n"));
  ASSERT_TRUE(outcome.run) << outcome.run.message();
  EXPECT_EQ(outcome.placements,
            "g-0 c 0,1\ng-1 d 0,1\ng-2 e 0,1\n"
            "g-0-clone-1 FAIL GangNoRoom -\ng-1-clone-1 FAIL GangNoRoom -\ng-2-clone-1 FAIL GangNoRoom -\n");
}

TEST(GangReplay, HowFarGangsAreSpreadIsAMeanOverThosePlaced) {
  // Three members of two GPUs take three nodes of two racks, then two members of one GPU one node: 1.5 racks and 2
  // nodes a gang. The third gang fails and does not count.
  const ClusterInput cluster = cluster_of({{"a", 2, "r1"}, {"b", 2, "r1"}, {"c", 2, "r2"}, {"d", 2, "r2"}});
  const Workload workload = workload_of("g,100,1,2,1000,3,,,\nh,100,1,1,1000,2,,,\ni,100,1,1,1000,2,,,\n");
  const Outcome outcome = run_on(cluster, workload, arrive_in_order("g\nh\ni\n"));
  ASSERT_TRUE(outcome.run) << outcome.run.message();
  EXPECT_EQ(outcome.run->gangs->placed, 2);
  EXPECT_THAT(outcome.run->gangs->spread, ElementsAre(GangSpread{"rack", 1.5}, GangSpread{"node", 2}));
}

TEST(GangReplay, RolesAreOfOneGang) {
  // The master has no GPU but its CPU: it takes part in the decision, and in the rack.
  ClusterInput cluster = cluster_of({{"a", 4, "r1"}, {"b", 4, "r2"}, {"c", 4, "r2"}});
  const Workload workload = workload_of("m,7000,1,0,0,1,g,master,rack\nw,1000,1,4,1000,2,g,worker,rack\n");
  const Outcome outcome = run_on(cluster, workload, arrive_in_order("g\n"));
  ASSERT_TRUE(outcome.run) << outcome.run.message();
  EXPECT_EQ(outcome.run->pods_placed, 3);
  EXPECT_THAT(outcome.placements, testing::AllOf(HasSubstr("w-0 b 0,1,2,3\n"), HasSubstr("w-1 c 0,1,2,3\n")));
  EXPECT_THAT(outcome.placements, testing::AnyOf(HasSubstr("m b -"), HasSubstr("m c -")));
  // With 8 cores a node there is no room for a second one beside the workers.
  const Workload two = workload_of("m,7500,1,0,0,3,g,master,rack\nw,1000,1,4,1000,2,g,worker,rack\n");
  EXPECT_EQ(run_on(cluster, two, arrive_in_order("g\n")).run->pods_placed, 0);
}

TEST(GangReplay, ALevelTheClusterDoesNotHaveIsRefusedBeforeAnythingIsPlaced) {
  const ClusterInput cluster = cluster_of({{"a", 4, "r1"}});
  const Outcome outcome = run_on(cluster, workload_of("g,100,1,1,1000,2,,,block\n"), arrive_in_order("g\n"));
  ASSERT_FALSE(outcome.run);
  EXPECT_EQ(outcome.run.message(),
            "trace \"jobs\": gang \"g\": the cluster has no topology level \"block\"; known: rack, node");
  EXPECT_EQ(outcome.placements, "");
}

TEST(GangReplay, LevelsMayBeNamed) {
  ClusterInput cluster = cluster_of({{"a", 2, ""}, {"b", 2, ""}, {"c", 2, ""}});
  for (std::size_t i = 0; i < 3; ++i) cluster.file.labels[i]["example.com/pod"] = i == 0 ? "p1" : "p2";
  cluster.levels = *placement::parse_levels("pod=example.com/pod");
  const Outcome outcome = run_on(cluster, workload_of("g,100,1,2,1000,2,,,pod\n"), arrive_in_order("g\n"));
  ASSERT_TRUE(outcome.run) << outcome.run.message();
  EXPECT_EQ(outcome.placements, "g-0 b 0,1\ng-1 c 0,1\n");
}

TEST(GangReplay, SameInputsGiveTheSameBytesForEveryPolicy) {
  const ClusterInput cluster = cluster_of({{"a", 4, "r1"}, {"b", 4, "r1"}, {"c", 4, "r2"}, {"d", 4, "r2"}});
  const Workload workload =
      workload_of("m,100,1,0,0,1,g,master,\nw,100,1,2,1000,2,g,worker,\nh,100,1,1,500,3,,,rack\np,100,1,1,1000,1,,,\n");
  for (const char* policy : {"random", "fgd", "best-fit+fgd", "topology"}) {
    const Outcome one = run_on(cluster, workload, arrive_inflated(1.3), policy);
    const Outcome two = run_on(cluster, workload, arrive_inflated(1.3), policy);
    ASSERT_TRUE(one.run) << one.run.message();
    EXPECT_GT(one.run->gangs->placed, 0) << policy;
    EXPECT_EQ(one.placements, two.placements) << policy;
    EXPECT_EQ(run_json(*one.run, std::nullopt), run_json(*two.run, std::nullopt));
    // The document is read back with all it says of gangs.
    EXPECT_EQ(parse_run_file(run_file(*one.run, "x"))->run, *one.run);
  }
}

TEST(GangReplay, GangsAreInTheDocumentOnlyWhereTheTraceHasSome) {
  const ClusterInput cluster = cluster_of({{"a", 4, ""}});
  const Outcome with = run_on(cluster, workload_of("g,100,1,1,1000,2,,,\n"), arrive_in_order("g\n"));
  EXPECT_THAT(run_json(*with.run, std::nullopt),
              HasSubstr(R"("gangs":{"arrived":1,"placed":1,"failed":0,"spread":[{"level":"node","domains":1.0}]})"));
  const Outcome without = run_on(cluster, workload_of("p,100,1,1,1000,1,,,\n"), arrive_in_order("p\n"));
  EXPECT_FALSE(without.run->gangs.has_value());
  EXPECT_THAT(run_json(*without.run, std::nullopt), testing::Not(HasSubstr("gangs")));
}

TEST(GangReplay, ACompareUsesTheLevelsOfItsCluster) {
  ClusterInput cluster = cluster_of({{"a", 2, ""}, {"b", 2, ""}});
  for (auto& labels : cluster.file.labels) labels["example.com/pod"] = "p1";
  const std::vector<TraceInput> traces = {{workload_of("g,100,1,2,1000,2,,,pod\n"), "t"}};
  const ArrivalPlan arrival = arrive_in_order("g\n");
  CompareSpec spec{cluster, traces, arrival, {"best-fit"}, {1}, 1, {}, ""};
  EXPECT_FALSE(compare(spec));
  cluster.levels = *placement::parse_levels("pod=example.com/pod");
  const auto compared = compare(spec);
  ASSERT_TRUE(compared) << compared.message();
  EXPECT_EQ(compared->runs.at(0).gangs->placed, 1);
}

}  // namespace
}  // namespace mortise::sim
