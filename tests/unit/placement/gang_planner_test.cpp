// Gangs on clusters small enough to see the right plan by eye. Cases from other schedulers' documents and reports name
// them; what is right is what these say, or what their reporters expected.
#include "scheduler/placement/gang_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gang_cluster.h"

namespace mortise::placement {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Counts = GangCluster::Counts;

const std::vector<TopologyLevel> kRacks = {{"rack", "rack"}};
const std::vector<TopologyLevel> kBlocks = {{"block", "block"}, {"rack", "rack"}};
const std::vector<TopologyLevel> kHosts = {{"rack", "rack"}, {"host", "kubernetes.io/hostname"}};
const std::vector<TopologyLevel> kZones = {{"zone", "zone"}, {"rack", "rack"}};

GangPlan planned(GangCluster& on, const GangRequest& request) {
  const GangDecision decision = on.plan(request);
  EXPECT_TRUE(std::holds_alternative<GangPlan>(decision));
  return std::get<GangPlan>(decision);
}
GangRejected refused(GangCluster& on, const GangRequest& request) {
  const GangDecision decision = on.plan(request);
  EXPECT_TRUE(std::holds_alternative<GangRejected>(decision));
  return std::get<GangRejected>(decision);
}

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
  EXPECT_EQ(refused(on, gang).detail, "needs 2 x 8 GPUs in one rack; the best rack b1/rack-a has room for 1");
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

// --- the order of wishes ----------------------------------------------------------------------------------------

TEST(GangPlanner, TheFinestLevelComesFirst) {
  GangCluster on(kZones);
  on.node("a", "z1/r1", 8);
  on.node("b", "z1/r2", 8);
  on.node("c", "z2/r1", 8);
  on.node("d", "z2/r1", 8);
  const GangPlan plan = planned(on, GangCluster::gang(2, 8));
  EXPECT_EQ(plan.level, 1);
  EXPECT_EQ(on.domains.path(plan.domain), "z2/r1");
  EXPECT_THAT(plan.domains, ElementsAre(2));
}

TEST(GangPlanner, OfDomainsThatDoTheTightestIsTaken) {
  GangCluster on(kRacks);
  for (int i = 0; i < 4; ++i) on.node("wide-" + std::to_string(i), "r1", 8);
  on.node("tight-1", "r2", 8);
  on.node("tight-2", "r2", 8);
  EXPECT_EQ(on.nodes(GangCluster::gang(2, 8)), (Counts{{"tight-1", 1}, {"tight-2", 1}}));
}

TEST(GangPlanner, OneNodeIsTheFinestLevel) {
  GangCluster on(kRacks);
  on.node("a", "r1", 8);
  on.node("b", "r2", 5);
  const GangPlan plan = planned(on, GangCluster::gang(4, 1));
  EXPECT_EQ(plan.level, on.domains.node_level());
  EXPECT_EQ(on.cluster.node_name(plan.members.front().node), "b");
  EXPECT_THAT(plan.domains, IsEmpty());
}

// Levels finer than the preferred one are not asked for, so the tighter rack wins over one in which a node would do.
TEST(GangPlanner, BelowThePreferredLevelFewerDomainsThenTightness) {
  GangCluster on(kZones);
  on.node("a1", "z1/r1", 8);
  on.node("a2", "z1/r1", 8);
  on.node("b1", "z2/r1", 2);
  on.node("b2", "z2/r1", 2);
  EXPECT_EQ(on.nodes(GangCluster::gang(4, 1, "", "zone")), (Counts{{"b1", 2}, {"b2", 2}}));
  EXPECT_EQ(on.nodes(GangCluster::gang(4, 1)), (Counts{{"a1", 4}}));
}

TEST(GangPlanner, PreferredIsGivenUpWhereItIsNotPossibleAndRequiredIsNot) {
  GangCluster on(kZones);
  on.node("a", "z1/r1", 8);
  on.node("b", "z1/r2", 8);
  on.node("c", "z2/r1", 8);
  EXPECT_EQ(on.nodes(GangCluster::gang(2, 8, "zone", "rack")), (Counts{{"a", 1}, {"b", 1}}));
  EXPECT_EQ(refused(on, GangCluster::gang(2, 8, "rack")).detail,
            "needs 2 x 8 GPUs in one rack; the best rack z1/r1 has room for 1");
  EXPECT_EQ(planned(on, GangCluster::gang(3, 8, "", "rack")).level, Domains::kCluster);
}

TEST(GangPlanner, ThePolicyDecidesAmongNodesWithAsMuchRoom) {
  GangCluster on({});
  const NodeId idle = on.node("idle", "", 8);
  const NodeId busy = on.node("busy", "", 8);
  ASSERT_TRUE(on.cluster.apply(on.cluster.intern(GangCluster::pod(0, 32'000)), busy, {}).ok());
  (void)idle;
  EXPECT_EQ(on.nodes(GangCluster::gang(1, 8)), (Counts{{"busy", 1}})) << "best-fit: the least left";
}

// --- roles ------------------------------------------------------------------------------------------------------

TEST(GangPlanner, AMasterWithoutGpusTakesNoGpuButStaysInTheDomain) {
  GangCluster on(kRacks);
  on.node("a", "r1", 8);
  on.node("b", "r1", 8);
  on.node("cpu", "r2", 0, 0);
  GangRequest gang = GangCluster::gang(2, 8, "rack");
  gang.roles.push_back(GangCluster::role("master", 1, GangCluster::pod(0, 4'000)));
  const GangPlan plan = planned(on, gang);
  EXPECT_EQ(plan.members.size(), 3U);
  EXPECT_EQ(on.domains.path(plan.domain), "r1");
  gang.roles[1].pod.cpu = 65'000;
  EXPECT_EQ(refused(on, gang).detail,
            "needs 1 x 65000 milli-CPU for role 'master' in one rack; the best rack r1 has room for 0");
}

TEST(GangPlanner, RolesTakeTurnsOnWhatTheyShare) {
  GangCluster on({});
  on.node("a", "", 8);
  on.node("b", "", 8);
  on.node("c", "", 8);
  GangRequest gang;
  gang.roles = {GangCluster::role("small", 4, GangCluster::pod(2)), GangCluster::role("middle", 1, GangCluster::pod(5)),
                GangCluster::role("large", 1, GangCluster::pod(6))};
  // 6 + 2, 5 + 2, 2 + 2: by GPUs 19 of 24, and no two nodes hold them.
  const GangPlan plan = planned(on, gang);
  EXPECT_EQ(plan.members.size(), 6U);
  EXPECT_THAT(plan.domains, ElementsAre(3));
}

// So many racks would do that comparing them takes all the steps there are for that.
TEST(GangPlanner, ManyRacksThatWouldDoAreNoObstacle) {
  GangCluster on(kRacks);
  for (int i = 0; i < 400 * 16; ++i) on.node("n" + std::to_string(i), "r" + std::to_string(i / 16), 8 - i % 4);
  GangRequest gang;
  gang.roles = {GangCluster::role("a", 4, GangCluster::pod(8)), GangCluster::role("b", 4, GangCluster::pod(4)),
                GangCluster::role("c", 8, GangCluster::pod(1))};
  gang.required_level = "rack";
  EXPECT_EQ(planned(on, gang).level, 0);
}

// Shares of 600, 500, 400 and 300 on devices with 1000 and 800 left: only 600 + 400 and 500 + 300 do.
TEST(GangPlanner, SharesAreFittedDeviceByDevice) {
  GangCluster on({});
  NodeSpec spec{"a", 64'000, 1, 110, 2, "A100"};
  const NodeId node = on.node(spec, "", 2);
  DeviceSet second;
  second.insert(1);
  ASSERT_TRUE(on.cluster.apply(on.cluster.intern(GangCluster::pod(1, 0, 200)), node, second).ok());
  GangRequest gang;
  for (const MilliGpu share : {300, 400, 500, 600}) {
    gang.roles.push_back(GangCluster::role(std::to_string(share), 1, GangCluster::pod(1, 0, share)));
  }
  EXPECT_EQ(on.nodes(gang), (Counts{{"a", 4}}));
}

TEST(GangPlanner, MembersOfARoleAreNumberedAsTheyArePlaced) {
  GangCluster on({});
  on.node("a", "", 8);
  on.node("b", "", 8);
  GangRequest gang = GangCluster::gang(2, 8);
  gang.roles = {GangCluster::role("x", 1, GangCluster::pod(8)), GangCluster::role("y", 1, GangCluster::pod(8))};
  const GangPlan plan = planned(on, gang);
  ASSERT_EQ(plan.members.size(), 2U);
  EXPECT_EQ(plan.members[0].role, 0U);
  EXPECT_EQ(plan.members[1].role, 1U);
  EXPECT_EQ(plan.members[1].index, 0U);
}

// --- minimum ----------------------------------------------------------------------------------------------------

TEST(GangPlanner, AsManyAsFitWhenTheMinimumDoes) {
  GangCluster on(kRacks);
  for (int i = 0; i < 3; ++i) on.node("a" + std::to_string(i), "r1", 8);
  for (int i = 0; i < 2; ++i) on.node("b" + std::to_string(i), "r2", 8);
  GangRequest gang = GangCluster::gang(6, 8, "rack");
  gang.roles[0].min = 2;
  const GangPlan plan = planned(on, gang);
  EXPECT_EQ(plan.members.size(), 3U);
  EXPECT_EQ(on.domains.path(plan.domain), "r1");
  gang.roles[0].min = 4;
  EXPECT_EQ(refused(on, gang).reason, GangReason::kNeverFits);
}

TEST(GangPlanner, AMinimumOverAllRoles) {
  GangCluster on({});
  on.node("a", "", 8);
  GangRequest gang;
  gang.roles = {GangCluster::role("x", 2, GangCluster::pod(4)), GangCluster::role("y", 2, GangCluster::pod(2))};
  gang.roles[0].min = gang.roles[1].min = 0;
  gang.min = 3;
  EXPECT_EQ(on.nodes(gang), (Counts{{"a", 3}})) << "4 + 2 + 2";
  gang.min = 4;
  EXPECT_EQ(refused(on, gang).detail, "needs 4 members; there is room for 3 of these 4");
}

// --- members that have a place ----------------------------------------------------------------------------------

TEST(GangPlanner, OthersComeToWhereMembersAre) {
  GangCluster on(kRacks);
  const NodeId there = on.node("a", "r1", 2);
  on.node("b", "r1", 8);
  on.node("c", "r2", 8);
  GangRequest gang = GangCluster::gang(2, 1);
  const std::vector<NodeId> bound = {there};
  gang.bound = bound;
  EXPECT_EQ(on.nodes(gang), (Counts{{"a", 2}}));
  gang.roles[0].count = gang.roles[0].min = 9;
  EXPECT_EQ(on.nodes(gang), (Counts{{"a", 2}, {"b", 7}}));
}

TEST(GangPlanner, MembersInSeveralDomainsOfTheRequiredLevelAreSaid) {
  GangCluster on(kRacks);
  const std::vector<NodeId> bound = {on.node("a", "r1", 8), on.node("b", "r2", 8)};
  GangRequest gang = GangCluster::gang(1, 1, "rack");
  gang.bound = bound;
  const GangRejected rejected = refused(on, gang);
  EXPECT_EQ(rejected.reason, GangReason::kBoundApart);
  EXPECT_EQ(rejected.detail, "members are in r1 and in r2, not in one rack");
}

// --- refusals ---------------------------------------------------------------------------------------------------

TEST(GangPlanner, NeverIsJudgedByWhatThereIsNotByWhatIsFree) {
  GangCluster on(kRacks);
  for (int i = 0; i < 3; ++i) on.node("a" + std::to_string(i), "r7", 0);
  on.node("b", "r8", 8);
  EXPECT_EQ(refused(on, GangCluster::gang(3, 8, "rack")).reason, GangReason::kNoRoom);
  const GangRejected never = refused(on, GangCluster::gang(4, 8, "rack"));
  EXPECT_EQ(never.reason, GangReason::kNeverFits);
  EXPECT_EQ(never.detail, "needs 4 x 8 GPUs in one rack; the best rack r7 has room for 3");
}

TEST(GangPlanner, NeverIsJudgedByTheNodesItCouldEverGoTo) {
  GangCluster on({});
  const std::vector<NodeId> a = {on.node("a", "", 8)};
  on.node("b", "", 8);
  GangRequest gang = GangCluster::gang(2, 8);
  gang.roles[0].allowed = a;  // of this question
  EXPECT_EQ(refused(on, gang).reason, GangReason::kNoRoom);
  gang.roles[0].eligible = a;  // of its selector
  EXPECT_EQ(refused(on, gang).reason, GangReason::kNeverFits);
}

TEST(GangPlanner, BadRequestsAreSaidInOneLine) {
  GangCluster on(kZones);
  on.node("a", "z/r", 8);
  EXPECT_EQ(refused(on, GangRequest{}).detail, "a gang needs at least one role");
  EXPECT_EQ(refused(on, GangCluster::gang(1, 8, "row")).detail,
            "there is no topology level 'row'; known: zone, rack, node");
  GangRequest gang = GangCluster::gang(2, 8);
  gang.roles[0].min = 3;
  EXPECT_THAT(refused(on, gang).detail, HasSubstr("min 3 of count 2"));
  gang = GangCluster::gang(20'000, 8);
  EXPECT_THAT(refused(on, gang).detail, HasSubstr("1 to 16384 members, not 20000"));
  gang = GangCluster::gang(1, 1);
  for (int i = 1; i <= 16; ++i) gang.roles.push_back(GangCluster::role("r", 1, GangCluster::pod(1, i)));
  EXPECT_THAT(refused(on, gang).detail, HasSubstr("17 different things; at most 16"));
  EXPECT_EQ(refused(on, gang).reason, GangReason::kInvalid);
}

TEST(GangPlanner, AnEmptyClusterHasNoRoom) {
  GangCluster on(kRacks);
  EXPECT_EQ(refused(on, GangCluster::gang(1, 1)).reason, GangReason::kNeverFits);
  EXPECT_EQ(refused(on, GangCluster::gang(1, 1, "rack")).detail, "there is no node");
}

}  // namespace
}  // namespace mortise::placement
