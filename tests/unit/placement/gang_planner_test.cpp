// Gangs on clusters small enough to see the right plan by eye.
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
const std::vector<TopologyLevel> kZones = {{"zone", "zone"}, {"rack", "rack"}};

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

TEST(GangPlanner, APreferredLevelThatNoNodeCarriesDoesNotCountAndARequiredOneDoes) {
  GangCluster on(kZones);
  on.node("a1", "z1/r1", 8);
  on.node("b1", "z2/r1", 2);
  on.node("b2", "z2/r1", 2);
  // As without a preference; with the zone preferred the tighter z2 would win.
  EXPECT_EQ(on.nodes(GangCluster::gang(4, 1, "", "row")), (Counts{{"a1", 4}}));
  EXPECT_EQ(on.nodes(GangCluster::gang(9, 1, "zone", "row")).begin()->second, -1) << "what is required still is";
  EXPECT_EQ(preference_left_out("row", on.domains),
            "its preferred level does not count: there is no topology level 'row'; known: zone, rack, node");
  EXPECT_EQ(preference_left_out("rack", on.domains), "");
  EXPECT_EQ(preference_left_out("", on.domains), "");
  EXPECT_EQ(refused(on, GangCluster::gang(1, 1, "row", "rack")).reason, GangReason::kUnknownLevel);
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

// Sixteen kinds that differ by 1m of CPU have more mixes on a node of 8 GPUs than can be looked at.
TEST(GangPlanner, ManyKindsOfSmallMembersFitWhereThereIsRoomForAll) {
  GangCluster on(kRacks);
  for (int n = 0; n < 40; ++n) on.node("n" + std::to_string(n), "r" + std::to_string(n / 8), 8);
  GangRequest gang;
  for (int k = 0; k < 16; ++k) {
    gang.roles.push_back(GangCluster::role("k" + std::to_string(k), 8, GangCluster::pod(1, k + 1)));
  }
  const GangPlan plan = planned(on, gang);
  EXPECT_EQ(plan.members.size(), 128U);
  EXPECT_EQ(plan.domains, (std::vector<std::int64_t>{2, 16})) << "128 GPUs are two racks of 8 nodes";
  for (GangRole& role : gang.roles) role.count = role.min = 4;
  EXPECT_EQ(on.domains.path(planned(on, gang).domain), "r0") << "64 GPUs are a rack";
  for (GangRole& role : gang.roles) role.count = role.min = 21;
  const GangRejected never = refused(on, gang);  // 336 GPUs of 320
  EXPECT_EQ(never.reason, GangReason::kNeverFits);
  EXPECT_TRUE(never.exact) << "sums alone say so";
}

// 96 members of 3 GPUs: the 288 are there, but a node of 8 takes two, so 40 nodes take 80. A search that left mixes out
// does not know that nobody could find a way.
TEST(GangPlanner, WhatASearchCutShortDoesNotFindIsNotSaidToNeverFit) {
  GangCluster on({});
  for (int n = 0; n < 40; ++n) on.node("n" + std::to_string(n), "", 8);
  GangRequest gang;
  for (int k = 0; k < 16; ++k) {
    gang.roles.push_back(GangCluster::role("k" + std::to_string(k), 6, GangCluster::pod(3, k + 1)));
  }
  const GangRejected rejected = refused(on, gang);
  EXPECT_EQ(rejected.reason, GangReason::kNoRoom);
  EXPECT_FALSE(rejected.exact);
  EXPECT_THAT(rejected.detail, HasSubstr("there is room for at least 80 of these 96"));
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
