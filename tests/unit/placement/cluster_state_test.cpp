#include "scheduler/placement/cluster_state.h"

#include <gtest/gtest.h>

namespace mortise::placement {
namespace {

constexpr Bytes kGiB = 1024 * kMiB;

NodeSpec node(const std::string& name, int gpus) {
  return {name, 64000, 256 * kGiB, 110, gpus, "A100", true};
}

PodRequest pod(int gpus, MilliGpu milli = kWholeGpu) {
  PodRequest request;
  request.name = "p";
  request.cpu = 4000;
  request.memory = kGiB;
  request.gpus = gpus;
  request.gpu_milli = milli;
  return request;
}

DeviceSet devices(std::initializer_list<int> indices) {
  DeviceSet set;
  for (const int index : indices) set.insert(index);
  return set;
}

class ClusterStateTest : public ::testing::Test {
 protected:
  ClusterStateTest() : n0(*cluster.add_node(node("n0", 4), 0)), n1(*cluster.add_node(node("n1", 4), 1)) {}

  ClusterState cluster;
  NodeId n0;
  NodeId n1;
};

TEST_F(ClusterStateTest, NodesAlikeShareOneState) {
  EXPECT_EQ(cluster.node_state(n0), cluster.node_state(n1));
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(1)), n0, devices({0})).ok());
  EXPECT_NE(cluster.node_state(n0), cluster.node_state(n1));
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(1)), n1, devices({0})).ok());
  EXPECT_EQ(cluster.node_state(n0), cluster.node_state(n1));
}

TEST_F(ClusterStateTest, ReleaseGivesBackExactlyWhatWasTaken) {
  const StateId before = cluster.node_state(n0);
  const ClusterTotals totals = cluster.totals();
  const auto held = cluster.apply(cluster.intern(pod(1, 300)), n0, devices({2}));
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(cluster.state_of(n0).free[2], 700);
  EXPECT_EQ(cluster.state_of(n0).cpu_free, 60000);
  EXPECT_EQ(cluster.totals().gpu_used, 300);
  EXPECT_EQ(cluster.totals().whole_free_gpus, 7);
  ASSERT_TRUE(cluster.release(*held).ok());
  EXPECT_EQ(cluster.node_state(n0), before);
  EXPECT_EQ(cluster.totals(), totals);
  EXPECT_FALSE(cluster.release(*held).ok()) << "a second release must not give anything back twice";
  EXPECT_TRUE(cluster.check().ok());
}

TEST_F(ClusterStateTest, ApplyRefusesATakenDeviceAndChangesNothing) {
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(1, 300)), n0, devices({0})).ok());
  const std::uint64_t version = cluster.version();
  EXPECT_EQ(cluster.apply(cluster.intern(pod(1)), n0, devices({0})).message(), "stale: a device is taken");
  EXPECT_EQ(cluster.apply(cluster.intern(pod(1, 800)), n0, devices({0})).message(), "stale: a device is taken");
  EXPECT_EQ(cluster.apply(cluster.intern(pod(2)), n0, devices({1})).message(),
            "stale: the number of devices is not what the pod asks for");
  EXPECT_EQ(cluster.apply(cluster.intern(pod(1)), n0, devices({7})).message(), "stale: a device is taken");
  EXPECT_EQ(cluster.version(), version);
}

TEST_F(ClusterStateTest, ApplyRefusesWhatCpuMemoryOrPodsCannotHold) {
  PodRequest big = pod(0);
  big.cpu = 64001;
  EXPECT_EQ(cluster.apply(cluster.intern(big), n0, {}).message(), "stale: not enough free CPU");
  big = pod(0);
  big.memory = 257 * kGiB;
  EXPECT_EQ(cluster.apply(cluster.intern(big), n0, {}).message(), "stale: not enough free memory");
  NodeSpec tiny = node("tiny", 0);
  tiny.pods = 1;
  const NodeId id = *cluster.add_node(tiny, 2);
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(0)), id, {}).ok());
  EXPECT_EQ(cluster.apply(cluster.intern(pod(0)), id, {}).message(), "stale: the node's pod limit is reached");
}

TEST_F(ClusterStateTest, UndoRestoresStatesTotalsAndIds) {
  const auto first = cluster.apply(cluster.intern(pod(2)), n0, devices({0, 1}));
  const StateId state = cluster.node_state(n0);
  const ClusterTotals totals = cluster.totals();
  const ClusterState::Mark outer = cluster.mark();
  ASSERT_TRUE(cluster.release(*first).ok());
  const auto second = cluster.apply(cluster.intern(pod(1)), n1, devices({3}));
  const ClusterState::Mark inner = cluster.mark();
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(1)), n1, devices({2})).ok());
  cluster.undo(inner);
  EXPECT_EQ(cluster.allocation(*second)->node, n1);
  EXPECT_EQ(cluster.state_of(n1).free[2], kWholeGpu);
  cluster.undo(outer);
  EXPECT_EQ(cluster.node_state(n0), state);
  EXPECT_EQ(cluster.totals(), totals);
  EXPECT_EQ(cluster.allocation(*first)->devices, devices({0, 1}));
  EXPECT_TRUE(cluster.check().ok());
}

TEST_F(ClusterStateTest, KeepMakesTheTrialReal) {
  const ClusterState::Mark mark = cluster.mark();
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(1)), n0, devices({0})).ok());
  cluster.keep(mark);
  EXPECT_EQ(cluster.totals().gpu_used, 1000);
}

TEST_F(ClusterStateTest, RefusesBadNodes) {
  EXPECT_EQ(cluster.add_node(node("n0", 1), 9).message(), "duplicate node name 'n0'");
  EXPECT_FALSE(cluster.add_node(node("many", kMaxDevices + 1), 9).ok());
  EXPECT_FALSE(cluster.add_node(node("negative", -1), 9).ok());
  EXPECT_EQ(cluster.node_count(), 2U);
}

TEST_F(ClusterStateTest, KindsFollowThePodsOnTheNode) {
  const auto share_a = cluster.apply(cluster.intern(pod(1, 100)), n0, devices({0}));
  const auto share_b = cluster.apply(cluster.intern(pod(1, 100)), n0, devices({0}));
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(2)), n0, devices({1, 2})).ok());
  EXPECT_EQ(cluster.state_of(n0).kinds, 0b101U);
  ASSERT_TRUE(cluster.release(*share_a).ok());
  EXPECT_EQ(cluster.state_of(n0).kinds, 0b101U) << "one share is still there";
  ASSERT_TRUE(cluster.release(*share_b).ok());
  EXPECT_EQ(cluster.state_of(n0).kinds, 0b100U);
}

TEST(StateTable, SlotsAreReusedUnderANewGenerationAndReadersNotice) {
  StateTable table;
  NodeState state;
  state.cpu_free = -1;
  table.add_node(0, state);
  const StateId first = table.state_of(NodeId{0});
  const std::uint32_t generation = table.generation(first);
  // 20,000 different states pass through; far fewer slots are kept.
  for (int i = 0; i < 20000; ++i) {
    state.cpu_free = i;
    table.move_node(NodeId{0}, state);
    ASSERT_EQ(table.state(table.state_of(NodeId{0})), state);
  }
  EXPECT_LE(table.slot_count(), 4096U);
  EXPECT_GT(table.generation(first), generation);
  EXPECT_TRUE(table.check().ok());
}

TEST(StateTable, TheFirstMemberIsTheLowestRank) {
  StateTable table;
  NodeState idle;
  NodeState busy;
  busy.cpu_free = 1;
  for (const std::uint64_t rank : {5U, 3U, 9U, 1U, 7U}) table.add_node(rank, idle);
  const StateId id = table.state_of(NodeId{0});
  EXPECT_EQ(table.members(id).front(), NodeId{3});
  table.move_node(NodeId{3}, busy);
  EXPECT_EQ(table.members(id).front(), NodeId{1});
  table.move_node(NodeId{3}, idle);
  EXPECT_EQ(table.members(id).front(), NodeId{3});
  EXPECT_TRUE(table.check().ok());
}

TEST(StateTable, AReaderThatMissedTooMuchIsTold) {
  StateTable table;
  NodeState state;
  table.add_node(0, state);
  const std::uint64_t seen = table.log_end();
  state.cpu_free = 1;
  table.move_node(NodeId{0}, state);
  ASSERT_TRUE(table.changes_since(seen).complete);
  EXPECT_EQ(table.changes_since(seen).slots.size(), 2U) << "the state left and the state entered";
  for (int i = 0; i < 100'000; ++i) {
    state.cpu_free = i % 7;
    table.move_node(NodeId{0}, state);
  }
  EXPECT_FALSE(table.changes_since(seen).complete);
}

}  // namespace
}  // namespace mortise::placement
