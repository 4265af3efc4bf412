// Gangs from other schedulers' documents and reports; what is right is what these say, or what their reporters
// expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/placement/gang_planner.h"
#include "tests/support/gang_cluster.h"

namespace mortise::placement {
namespace {

using testing::ElementsAre;
using Counts = GangCluster::Counts;

const std::vector<TopologyLevel> kRacks = {{"rack", "rack"}};
const std::vector<TopologyLevel> kBlocks = {{"block", "block"}, {"rack", "rack"}};
const std::vector<TopologyLevel> kHosts = {{"rack", "rack"}, {"host", "kubernetes.io/hostname"}};
const std::vector<TopologyLevel> kZones = {{"zone", "zone"}, {"rack", "rack"}};
const std::vector<TopologyLevel> kCliques = {{"clique", "nvidia.com/gpu.clique"}};

// --- worked examples of others ----------------------------------------------------------------------------------

// Kueue, KEP 2724, BestFit: 3, 3, 2 and 1 free, 7 pods. The last domain is the tightest.
TEST(GangExamples, KueueBestFitTakesTheRoomiestAndThenTheTightest) {
  GangCluster on(kRacks);
  on.node("a", "r1", 3);
  on.node("b", "r2", 3);
  on.node("c", "r3", 2);
  on.node("d", "r4", 1);
  EXPECT_EQ(on.nodes(GangCluster::gang(7, 1)), (Counts{{"a", 3}, {"b", 3}, {"d", 1}}));
}

TEST(GangExamples, KueueBestFitAmongNodesOfOneDomain) {
  GangCluster on({});
  on.node("a", "", 3);
  on.node("b", "", 3);
  on.node("c", "", 2);
  on.node("d", "", 1);
  EXPECT_EQ(on.nodes(GangCluster::gang(7, 1)), (Counts{{"a", 3}, {"b", 3}, {"d", 1}}));
}

// The same with pods of two GPUs each for slices of two: 6, 5, 4, 3 and 2 pods, 12 of them are 6 slices: 6, -, 4, -, 2.
TEST(GangExamples, KueueBestFitWithSlicesOfTwo) {
  GangCluster on({});
  on.node("a", "", 6);
  on.node("b", "", 5);
  on.node("c", "", 4);
  on.node("d", "", 3);
  on.node("e", "", 2);
  EXPECT_EQ(on.nodes(GangCluster::gang(6, 2)), (Counts{{"a", 3}, {"c", 2}, {"e", 1}}));
}

// KAI, docs/topology: zone A has 5 GPUs free, zone B 6; 3 tasks go to the tighter zone A, two of them into rack A1.
TEST(GangExamples, KaiTakesTheTighterZoneAndItsRoomiestRack) {
  GangCluster on(kZones);
  on.node("a1-1", "A/A1", 1, 1);
  on.node("a1-2", "A/A1", 1, 1);
  for (const std::string rack : {"A2", "A3", "A4"}) on.node(rack + "-1", "A/" + rack, 1, 1);
  for (const std::string rack : {"B1", "B2", "B3"}) {
    on.node(rack + "-1", "B/" + rack, 1, 1);
    on.node(rack + "-2", "B/" + rack, 1, 1);
  }
  EXPECT_EQ(on.nodes(GangCluster::gang(3, 1, "zone", "rack")), (Counts{{"a1-1", 1}, {"a1-2", 1}, {"A2-1", 1}}));
}

// --- reports ----------------------------------------------------------------------------------------------------

// scheduler-plugins#429: 6, 2, 2 and 2 GPUs are 12 in sum, but only one of three pods of 4 fits.
TEST(GangReports, Sp429SumsDoNotAdmitWhatIsFragmented) {
  GangCluster on({});
  on.node("a", "", 6);
  on.node("b", "", 2);
  on.node("c", "", 2);
  on.node("d", "", 2);
  const GangRejected rejected = refused(on, GangCluster::gang(3, 4));
  EXPECT_EQ(rejected.reason, GangReason::kNoRoom);
  EXPECT_EQ(rejected.detail, "needs 3 x 4 GPUs; there is room for 1");
  EXPECT_EQ(on.nodes(GangCluster::gang(1, 2)), (Counts{{"b", 1}})) << "the next one is not held up";
}

// scheduler-plugins#713: nine of ten nodes fit, so nothing is held, and a gang of nine runs.
TEST(GangReports, Sp713NothingIsHeldForAGangThatLacksOneNode) {
  GangCluster on({});
  for (int i = 0; i < 10; ++i) on.node("n" + std::to_string(i), "", i == 4 ? 7 : 8);
  EXPECT_EQ(refused(on, GangCluster::gang(10, 8)).detail, "needs 10 x 8 GPUs; there is room for 9");
  EXPECT_EQ(on.nodes(GangCluster::gang(9, 8)).size(), 9U);
}

// scheduler-plugins#114: two nodes of 8 GPUs, two gangs of ten: one runs whole, a third of six takes the rest.
TEST(GangReports, Sp114GangsDoNotHoldPartsOfEachOther) {
  GangCluster on({});
  on.node("a", "", 8);
  on.node("b", "", 8);
  for (const GangMember& member : planned(on, GangCluster::gang(10, 1)).members) {
    ASSERT_TRUE(on.cluster.apply(on.cluster.intern(GangCluster::pod(1)), member.node, member.devices).ok());
  }
  EXPECT_EQ(refused(on, GangCluster::gang(10, 1)).detail, "needs 10 x 1 GPU; there is room for 6");
  EXPECT_EQ(planned(on, GangCluster::gang(6, 1)).members.size(), 6U);
}

// volcano#4343: three groups of two nodes; four pods, one per node, use two groups, not three.
TEST(GangReports, Volcano4343SoftTopologyUsesTheFewestDomains) {
  GangCluster on(kRacks);
  for (int i = 1; i <= 6; ++i) on.node("n" + std::to_string(i), "s" + std::to_string((i - 1) / 2), 1, 1);
  EXPECT_EQ(on.nodes(GangCluster::gang(4, 1, "", "rack")), (Counts{{"n1", 1}, {"n2", 1}, {"n3", 1}, {"n4", 1}}));
}

// volcano#5205: {1,2}, {3,4}, {5,6}; 4 and 6 are full; two pods that cannot share a node go to 1 and 2.
TEST(GangReports, Volcano5205ThePairOfNodesInOneDomainIsFound) {
  GangCluster on(kRacks);
  for (int i = 1; i <= 6; ++i) {
    on.node("n" + std::to_string(i), "hn" + std::to_string((i + 1) / 2), i == 4 || i == 6 ? 0 : 8);
  }
  EXPECT_EQ(on.nodes(GangCluster::gang(2, 8, "", "rack")), (Counts{{"n1", 1}, {"n2", 1}}));
}

// volcano#3291, the planning of it: one node is free, the other full. A gang of two does not fit, and the refusal
// counts the free one, so that one more node's worth is what has to go.
TEST(GangReports, Volcano3291TheFreeNodeCounts) {
  GangCluster on({});
  on.node("free", "", 8);
  on.node("low", "", 0);
  const GangRejected rejected = refused(on, GangCluster::gang(2, 8));
  EXPECT_EQ(rejected.reason, GangReason::kNoRoom);
  EXPECT_EQ(rejected.detail, "needs 2 x 8 GPUs; there is room for 1");
}

// kueue#15373: rack r1 has a node for leaders and one for workers, r2 two for workers.
TEST(GangReports, Kueue15373EveryRolesOwnNodesCount) {
  GangCluster on(kRacks);
  const std::vector<NodeId> leaders = {on.node("leader-1", "r1", 8)};
  std::vector<NodeId> workers = {on.node("worker-1", "r1", 8)};
  workers.push_back(on.node("worker-2", "r2", 8));
  workers.push_back(on.node("worker-3", "r2", 8));
  GangRequest gang;
  gang.roles = {GangCluster::role("leader", 1, GangCluster::pod(8)),
                GangCluster::role("worker", 1, GangCluster::pod(8))};
  gang.roles[0].allowed = leaders;
  gang.roles[1].allowed = workers;
  gang.required_level = "rack";
  EXPECT_EQ(on.nodes(gang), (Counts{{"leader-1", 1}, {"worker-1", 1}}));
  gang.roles[1].allowed = std::span(workers).subspan(1);
  EXPECT_EQ(refused(on, gang).detail,
            "needs 1 x 8 GPUs and 1 x 8 GPUs in one rack; the best rack r1 has room for 1 of these 2");
}

// kueue PR 14292: b1/rack-a is no part of b1/rack-ab, so a member that is replaced stays in its rack.
TEST(GangReports, Kueue14292AReplacementStaysInItsRack) {
  GangCluster on(kBlocks);
  const NodeId bound = on.node("x1", "b1/rack-a", 0);
  on.node("x2", "b1/rack-a", 8);
  on.node("x3", "b1/rack-ab", 8);
  GangRequest gang = GangCluster::gang(1, 8, "rack");
  const std::vector<NodeId> there = {bound};
  gang.bound = there;
  EXPECT_EQ(on.nodes(gang), (Counts{{"x2", 1}}));
  gang.roles[0].count = gang.roles[0].min = 2;
  EXPECT_EQ(refused(on, gang).detail,
            "needs 2 x 8 GPUs in one rack; rack b1/rack-a, where members of it are, has room for 1");
}

// kueue#14009: racks of one name in two blocks are two racks.
TEST(GangReports, Kueue14009RacksOfOneNameInTwoBlocksAreNotOne) {
  GangCluster on(kBlocks);
  on.node("a", "b1/r", 8);
  on.node("b", "b2/r", 8);
  EXPECT_EQ(refused(on, GangCluster::gang(2, 8, "rack")).reason, GangReason::kNeverFits);
}

// kueue#14304: hostname labels that are not the nodes' names do not matter.
TEST(GangReports, Kueue14304NodesAreToldApartByName) {
  GangCluster on(kHosts);
  on.node("a", "r/other", 8);
  on.node("b", "r/other", 8);
  EXPECT_EQ(on.nodes(GangCluster::gang(2, 8, "rack")), (Counts{{"a", 1}, {"b", 1}}));
  EXPECT_EQ(refused(on, GangCluster::gang(2, 8, "kubernetes.io/hostname")).reason, GangReason::kNeverFits);
}

// Kubernetes PR 140308: nodes without the label are not joined under the empty value.
TEST(GangReports, Kubernetes140308NodesWithoutTheLabelAreNotOneDomain) {
  GangCluster on(kRacks);
  on.node("a", "", 8);
  on.node("b", "", 8);
  on.node("c", "r1", 8);
  EXPECT_EQ(refused(on, GangCluster::gang(2, 8, "rack")).reason, GangReason::kNeverFits);
  EXPECT_EQ(on.nodes(GangCluster::gang(1, 8, "rack")), (Counts{{"a", 1}}));
}

// volcano#3373: a hundred nodes, two gangs of a hundred: the second one gets none, not half.
TEST(GangReports, Volcano3373OneOfTwoLargeGangsRuns) {
  GangCluster on({});
  for (int i = 0; i < 100; ++i) on.node("n" + std::to_string(i), "", 8);
  for (const GangMember& member : planned(on, GangCluster::gang(100, 8)).members) {
    ASSERT_TRUE(on.cluster.apply(on.cluster.intern(GangCluster::pod(8)), member.node, member.devices).ok());
  }
  EXPECT_EQ(refused(on, GangCluster::gang(100, 8)).detail, "needs 100 x 8 GPUs; there is room for 0");
}

// volcano#4899: a hundred racks of ten nodes are all too small for a thousand pods; it is placed over all of them.
TEST(GangReports, Volcano4899DomainsThatAreTooSmallAreNoObstacle) {
  GangCluster on(kRacks);
  for (int i = 0; i < 1000; ++i) on.node("n" + std::to_string(i), "r" + std::to_string(i / 10), 1, 1);
  const GangPlan plan = planned(on, GangCluster::gang(1000, 1, "", "rack"));
  EXPECT_EQ(plan.level, Domains::kCluster);
  EXPECT_THAT(plan.domains, ElementsAre(100, 1000));
}

// KEP 4671: an order can fail although there is a way. The small one must not take the only node for the large one.
TEST(GangReports, Kep4671HeterogeneousMembersAreNotPlacedInTheOrderTheyCome) {
  GangCluster on({});
  on.node("large", "", 8);
  on.node("small", "", 4);
  GangRequest gang;
  gang.roles = {GangCluster::role("ps", 1, GangCluster::pod(4)), GangCluster::role("worker", 1, GangCluster::pod(8))};
  EXPECT_EQ(on.nodes(gang), (Counts{{"large", 1}, {"small", 1}}));
}

// volcano#4343, its state in between: two members are on s0 and one is on n3. n4 and n5 are as far from the group as a
// whole, but n4 is in a domain that the gang is in already.
TEST(GangReports, Volcano4343WhoComesLastJoinsADomainThatIsInUse) {
  GangCluster on(kRacks);
  std::vector<NodeId> bound;
  for (int i = 1; i <= 6; ++i) {
    const NodeId node = on.node("n" + std::to_string(i), "s" + std::to_string((i - 1) / 2), i <= 3 ? 0 : 1, 1);
    if (i <= 3) bound.push_back(node);
  }
  GangRequest gang = GangCluster::gang(1, 1, "", "rack");
  gang.bound = bound;
  EXPECT_EQ(on.nodes(gang), (Counts{{"n4", 1}}));
}

// kueue#10815: slices of 16 nodes with 4 GPUs each, every one within a GB200 clique of 18 nodes. A clique with 15 free
// nodes does not take a slice, one with 16 does, and what is free in two of them does not add up.
TEST(GangReports, Kueue10815ASliceIsInOneClique) {
  GangCluster on(kCliques);
  for (int n = 0; n < 18; ++n) {
    on.node("a" + std::to_string(n), "a", n < 15 ? 4 : 0, 4);
    on.node("b" + std::to_string(n), "b", n < 16 ? 4 : 0, 4);
  }
  const Counts placed = on.nodes(GangCluster::gang(16, 4, "clique"));
  EXPECT_EQ(placed.size(), 16U);
  for (const auto& [node, members] : placed) EXPECT_EQ(node[0], 'b') << node;
  EXPECT_EQ(refused(on, GangCluster::gang(17, 4, "clique")).detail,
            "needs 17 x 4 GPUs in one clique; the best clique b has room for 16");
}

// grove#648: one block is asked for each gang, not for all gangs of a workload together. Each block has two free nodes.
TEST(GangReports, Grove648EachGangHasABlockOfItsOwn) {
  GangCluster on(kBlocks);
  for (const std::string block : {"b1", "b2"}) {
    for (const std::string node : {"-x", "-y"}) on.node(block + node, block + "/r", 8);
  }
  const GangPlan first = planned(on, GangCluster::gang(2, 8, "block"));
  for (const GangMember& member : first.members) {
    ASSERT_TRUE(on.cluster.apply(on.cluster.intern(GangCluster::pod(8)), member.node, member.devices).ok());
  }
  const GangPlan second = planned(on, GangCluster::gang(2, 8, "block"));
  EXPECT_EQ(on.domains.path(first.domain), "b1/r");
  EXPECT_EQ(on.domains.path(second.domain), "b2/r");
}

}  // namespace
}  // namespace mortise::placement
