// Nodes that come, change and go while pods are on them.
#include <gtest/gtest.h>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/feasibility.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::placement {
namespace {

constexpr Bytes kGiB = 1024 * kMiB;

NodeSpec node(const std::string& name, int gpus) {
  return {name, 64000, 256 * kGiB, 110, gpus, "A100"};
}

PodRequest pod(int gpus, MilliCpu cpu = 4000) {
  PodRequest request;
  request.cpu = cpu;
  request.memory = kGiB;
  request.gpus = gpus;
  return request;
}

DeviceSet devices(std::initializer_list<int> indices) {
  DeviceSet set;
  for (const int index : indices) set.insert(index);
  return set;
}

class NodeChanges : public ::testing::Test {
 protected:
  AllocationId apply(NodeId on, const PodRequest& request, const DeviceSet& taken) {
    const auto applied = cluster.apply(cluster.intern(request), on, taken);
    EXPECT_TRUE(applied.ok()) << applied.message();
    return *applied;
  }
  Reason reason(NodeId on, const PodRequest& request) {
    const NodeState& state = cluster.state_of(on);
    return feasibility(state, cluster.machine(state.machine), cluster.shapes().shape(cluster.intern(request)));
  }

  ClusterState cluster;
};

TEST_F(NodeChanges, ARemovedNodeIsGoneAndItsIdIsUsedAgain) {
  const NodeId a = *cluster.add_node(node("a", 8), 1);
  const NodeId b = *cluster.add_node(node("b", 4), 2);
  ASSERT_TRUE(cluster.remove_node(a).ok());
  EXPECT_FALSE(cluster.find_node("a").has_value());
  EXPECT_EQ(cluster.totals().gpus, 4);
  EXPECT_EQ(cluster.totals().nodes, 1);
  EXPECT_TRUE(cluster.check().ok());
  EXPECT_EQ(*cluster.add_node(node("c", 2), 0), a);
  EXPECT_EQ(cluster.node_name(a), "c");
  EXPECT_EQ(cluster.totals().whole_free_gpus, 6);
  EXPECT_TRUE(cluster.check().ok());
  EXPECT_NE(cluster.node_state(a), cluster.node_state(b));
}

TEST_F(NodeChanges, ANodeWithPodsIsNotRemoved) {
  const NodeId a = *cluster.add_node(node("a", 8), 1);
  const AllocationId held = apply(a, pod(1), devices({0}));
  EXPECT_EQ(cluster.remove_node(a).message(), "node 'a' holds pods");
  ASSERT_TRUE(cluster.release(held).ok());
  EXPECT_TRUE(cluster.remove_node(a).ok());
}

TEST_F(NodeChanges, MoreUsedThanAllocatableIsNoUnderflow) {
  const NodeId a = *cluster.add_node(node("a", 8), 1);
  const AllocationId held = apply(a, pod(4, 60000), devices({0, 1, 2, 3}));
  NodeSpec smaller = node("a", 8);
  smaller.cpu = 32000;
  ASSERT_TRUE(cluster.update_node(a, smaller).ok());
  EXPECT_EQ(cluster.state_of(a).cpu_free, -28000);
  EXPECT_EQ(reason(a, pod(1, 1)), Reason::kInsufficientCpu);
  ASSERT_TRUE(cluster.release(held).ok());
  EXPECT_EQ(cluster.state_of(a).cpu_free, 32000);
  EXPECT_EQ(reason(a, pod(1, 1)), Reason::kNone);
}

TEST_F(NodeChanges, LostGpusAreNotHandedOutAndPodsKeepTheirs) {
  const NodeId a = *cluster.add_node(node("a", 4), 1);
  const AllocationId held = apply(a, pod(2), devices({0, 1}));
  NodeSpec hurt = node("a", 4);
  hurt.gpus_lost = 1;
  ASSERT_TRUE(cluster.update_node(a, hurt).ok());
  EXPECT_EQ(cluster.totals().gpus, 3);
  EXPECT_EQ(cluster.totals().gpu_used, 2000);
  EXPECT_EQ(reason(a, pod(1)), Reason::kNone);
  EXPECT_EQ(reason(a, pod(2)), Reason::kInsufficientGpu);  // three are healthy, two are used
  EXPECT_EQ(reason(a, pod(4)), Reason::kInsufficientGpu);  // the lost one may come back
  ASSERT_TRUE(cluster.release(held).ok());
  EXPECT_EQ(reason(a, pod(3)), Reason::kNone);
  ASSERT_TRUE(cluster.update_node(a, node("a", 4)).ok());
  EXPECT_EQ(cluster.totals().whole_free_gpus, 4);
}

TEST_F(NodeChanges, AHeldDeviceThatIsGoneStaysInTheBooks) {
  const NodeId a = *cluster.add_node(node("a", 4), 1);
  const AllocationId held = apply(a, pod(1), devices({3}));
  ASSERT_TRUE(cluster.update_node(a, node("a", 2)).ok());
  EXPECT_EQ(cluster.totals().gpu_used, 1000);
  EXPECT_EQ(reason(a, pod(2)), Reason::kInsufficientGpu);  // two healthy, one pod: so counts kube-scheduler, too
  EXPECT_EQ(reason(a, pod(1)), Reason::kNone);
  ASSERT_TRUE(cluster.release(held).ok());
  ASSERT_TRUE(cluster.update_node(a, node("a", 2)).ok());
  EXPECT_EQ(reason(a, pod(2)), Reason::kNone);
  EXPECT_EQ(cluster.totals().gpus, 2);
}

TEST_F(NodeChanges, APodThatDoesNotFitIsBookedAllTheSame) {
  const NodeId a = *cluster.add_node(node("a", 2), 1);
  apply(a, pod(2), devices({0, 1}));
  const auto late = cluster.adopt(cluster.intern(pod(2, 80000)), a, {}, Knowledge::kUnknown);
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(cluster.state_of(a).cpu_free, 64000 - 4000 - 80000);
  EXPECT_EQ(cluster.totals().gpu_used, 2000);  // no device is held twice
  ASSERT_TRUE(cluster.release(*late).ok());
  EXPECT_EQ(cluster.state_of(a).cpu_free, 60000);
  EXPECT_TRUE(cluster.check().ok());
}

TEST_F(NodeChanges, NodesOfManyGpusAreCountedOnly) {
  const NodeId a = *cluster.add_node(node("a", 128), 1);
  const AllocationId held = apply(a, pod(2), devices({3, 127}));
  EXPECT_EQ(cluster.state_of(a).whole_free(), 126);
  EXPECT_TRUE(cluster.check().ok());
  ASSERT_TRUE(cluster.release(held).ok());
  EXPECT_EQ(cluster.state_of(a).whole_free(), 128);
}

TEST_F(NodeChanges, AnotherTopologyForgetsWhatWasForeseen) {
  NodeTopologyTable table;
  NodeSpec known = node("a", 8);
  known.topology = *table.intern(topology::read_synthetic("numa:2 gpu:4", "test")->machine, {});
  const NodeId a = *cluster.add_node(known, 1);
  ASSERT_TRUE(cluster.apply(cluster.intern(pod(1)), a, devices({0}), Knowledge::kPredicted).ok());
  EXPECT_EQ(cluster.belief_of(a)->states.size(), 8U);
  known.topology = *table.intern(topology::read_synthetic("numa:4 gpu:2", "test")->machine, {});
  ASSERT_TRUE(cluster.update_node(a, known).ok());
  ASSERT_NE(cluster.belief_of(a), nullptr);
  EXPECT_TRUE(cluster.belief_of(a)->by_numa);
  EXPECT_EQ(cluster.belief_of(a)->states.size(), 4U);  // on any of four NUMA nodes
  EXPECT_TRUE(cluster.check().ok());
}

}  // namespace
}  // namespace mortise::placement
