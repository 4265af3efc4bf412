// Gangs whose members have a node each in their selectors: more kinds of members than one search takes.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tests/support/gang_cluster.h"

namespace mortise::placement {
namespace {

const std::vector<TopologyLevel> kRacks = {{"rack", "rack"}};

/// Twenty pods of 8 GPUs, of which each may go to one node only, as Kueue's topology-aware scheduling leaves them, and
/// one without GPUs that may go anywhere.
struct Pinned {
  explicit Pinned(GangCluster& on, int nodes_in_first_rack) {
    nodes.reserve(20);
    for (int i = 0; i < 20; ++i) {
      nodes.push_back(on.node("n" + std::to_string(i), i < nodes_in_first_rack ? "r1" : "r2", 8));
      gang.roles.push_back(GangCluster::role("worker", 1, GangCluster::pod(8)));
      gang.roles.back().allowed = std::span(&nodes.back(), 1);
    }
    gang.roles.push_back(GangCluster::role("master", 1, GangCluster::pod(0, 4000)));
  }
  std::vector<NodeId> nodes;
  GangRequest gang;
};

TEST(GangPinned, MembersPinnedToANodeEachAreMoreKindsThanASearchTakesAndArePlaced) {
  GangCluster on(kRacks);
  Pinned pinned(on, 20);
  on.node("other", "r2", 8);
  pinned.gang.required_level = "rack";
  const GangPlan plan = std::get<GangPlan>(on.plan(pinned.gang));
  ASSERT_EQ(plan.members.size(), 21U);
  for (const GangMember& member : plan.members) {
    if (member.role == 20) {
      EXPECT_NE(on.cluster.node_name(member.node), "other") << "the master is in the rack of the workers";
    } else {
      EXPECT_EQ(member.node, pinned.nodes[member.role]);
      EXPECT_EQ(member.devices.size(), 8);
    }
  }
  EXPECT_EQ(on.domains.path(plan.domain), "r1");
  EXPECT_EQ(on.cluster.totals().whole_free_gpus, 21 * 8) << "nothing is taken by planning";
}

TEST(GangPinned, OnePinnedMemberWithoutRoomKeepsAllOut) {
  GangCluster on(kRacks);
  Pinned pinned(on, 20);
  on.take(pinned.nodes[7], 1);
  EXPECT_EQ(std::get<GangRejected>(on.plan(pinned.gang)).reason, GangReason::kNoRoom);
  EXPECT_EQ(std::get<GangRejected>(on.plan(pinned.gang)).detail, "needs 1 x 8 GPUs on node n7");
  EXPECT_EQ(on.cluster.totals().whole_free_gpus, 20 * 8 - 1);
}

TEST(GangPinned, AMemberPinnedToAMachineThatIsTooSmallNeverFits) {
  GangCluster on(kRacks);
  Pinned pinned(on, 20);
  const NodeId small = on.node("small", "r1", 4, 4);
  pinned.gang.roles[3].allowed = std::span(&small, 1);
  EXPECT_EQ(std::get<GangRejected>(on.plan(pinned.gang)).reason, GangReason::kNeverFits);
  EXPECT_EQ(std::get<GangRejected>(on.plan(pinned.gang)).detail, "needs 1 x 8 GPUs on node small");
}

// Two pods of 3 GPUs and a role of one pod of 2 share a node of 8, others have one each.
TEST(GangPinned, MembersThatShareTheirNodeGetDevicesOfTheirOwn) {
  GangCluster on(kRacks);
  Pinned pinned(on, 20);
  const NodeId shared = on.node("shared", "r1", 8);
  pinned.gang.roles.push_back(GangCluster::role("three", 2, GangCluster::pod(3)));
  pinned.gang.roles.push_back(GangCluster::role("two", 1, GangCluster::pod(2)));
  for (const std::size_t r : {21U, 22U}) pinned.gang.roles[r].allowed = std::span(&shared, 1);
  const GangPlan plan = std::get<GangPlan>(on.plan(pinned.gang));  // which looks that all of it can be taken at once
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> gpus;
  for (const GangMember& member : plan.members) {
    if (member.node == shared) gpus[{member.role, member.index}] = member.devices.size();
  }
  EXPECT_EQ(gpus[std::pair(21U, 0U)], 3);
  EXPECT_EQ(gpus[std::pair(21U, 1U)], 3);
  EXPECT_EQ(gpus[std::pair(22U, 0U)], 2);
}

TEST(GangPinned, MembersPinnedToTwoRacksAreNotInOne) {
  GangCluster on(kRacks);
  Pinned pinned(on, 12);
  pinned.gang.required_level = "rack";
  EXPECT_EQ(std::get<GangRejected>(on.plan(pinned.gang)).detail, "members are in r1 and in r2, not in one rack");
}

}  // namespace
}  // namespace mortise::placement
