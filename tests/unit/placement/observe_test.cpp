// What is seen of the GPUs that pods hold. The machines are small enough to see the right answer by eye.
#include <gtest/gtest.h>

#include <bit>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::placement {
namespace {

using topology::TopologyPolicy;

constexpr Bytes kGiB = 1024 * kMiB;
// Two NUMA nodes of 8 CPUs, 64 GiB and 4 GPUs: 0 to 3 and 4 to 7.
constexpr const char* kTwoNodes = "numa:2 cpu:8 memory:64Gi gpu:4";

DeviceSet devices(std::initializer_list<int> indices) {
  DeviceSet set;
  for (const int index : indices) set.insert(index);
  return set;
}

class ObserveTest : public ::testing::Test {
 protected:
  static TopologySpec aligned(AssignmentMode mode = AssignmentMode::kPredicted) {
    TopologySpec spec;
    spec.kubelet.policy = TopologyPolicy::kSingleNumaNode;
    spec.mode = mode;
    return spec;
  }
  NodeId add(const TopologySpec& spec) {
    NodeSpec node{"n" + std::to_string(cluster.node_count()), 16'000, 128 * kGiB, 110, 8, "V100"};
    node.topology = *table.intern(topology::read_synthetic(kTwoNodes, "test")->machine, spec);
    return *cluster.add_node(node, cluster.node_count());
  }
  static PodRequest pod(int gpus) {
    PodRequest request;
    request.name = "p";
    request.cpu = 1000;
    request.memory = kGiB;
    request.gpus = gpus;
    return request;
  }
  /// As a pod that is found, with devices that are only one possibility.
  AllocationId find(NodeId node, int gpus, const DeviceSet& on) {
    return *cluster.adopt(cluster.intern(pod(gpus)), node, on, Knowledge::kUnknown);
  }
  /// As a pod that is placed.
  AllocationId place(NodeId node, int gpus) {
    const ShapeId shape = cluster.intern(pod(gpus));
    const DeviceSet on = cluster.choose_devices(cluster.state_of(node), cluster.shapes().shape(shape), std::nullopt);
    return *cluster.apply(shape, node, on, Knowledge::kPredicted);
  }
  Reason reason(NodeId node, int gpus) {
    return cluster.topology_reason(cluster.state_of(node), cluster.shapes().shape(cluster.intern(pod(gpus))));
  }
  std::size_t states(NodeId node) { return cluster.belief_of(node)->states.size(); }
  Observed count(NodeId node, int on_0, int on_1, std::vector<AllocationId> pods) {
    const auto seen = cluster.observe_count(node, {{0, on_0}, {1, on_1}}, pods);
    EXPECT_TRUE(seen.ok()) << seen.message();
    EXPECT_TRUE(cluster.check().ok());
    return *seen;
  }
  Observed see(AllocationId id, const DeviceSet& on) {
    const auto seen = cluster.observe_devices(id, on);
    EXPECT_TRUE(seen.ok()) << seen.message();
    EXPECT_TRUE(cluster.check().ok());
    return *seen;
  }

  NodeTopologyTable table;
  ClusterState cluster;
};

TEST_F(ObserveTest, ACountTellsWhereThereIsRoom) {
  const NodeId node = add(aligned());
  const AllocationId a = find(node, 2, devices({0, 1}));
  const AllocationId b = find(node, 2, devices({2, 3}));
  EXPECT_EQ(states(node), 5U);  // 0 to 4 of them on NUMA node 0
  EXPECT_EQ(reason(node, 3), Reason::kTopologyAffinity);
  EXPECT_EQ(count(node, 0, 4, {a, b}), Observed::kConsistent);
  EXPECT_EQ(states(node), 1U);
  EXPECT_EQ(reason(node, 4), Reason::kNone);
  EXPECT_EQ(count(node, 0, 4, {a, b}), Observed::kNothingNew);
}

TEST_F(ObserveTest, ACountStaysTrueOfThoseThatStay) {
  const NodeId node = add(aligned());
  const AllocationId a = find(node, 2, devices({0, 1}));
  const AllocationId b = find(node, 1, devices({2}));
  EXPECT_EQ(count(node, 3, 0, {a, b}), Observed::kConsistent);
  ASSERT_TRUE(cluster.release(a).ok());
  EXPECT_EQ(states(node), 1U);  // the one that stays is on NUMA node 0
  const AllocationId c = find(node, 1, devices({0}));
  EXPECT_EQ(states(node), 2U);
  // One each: so the newcomer is on NUMA node 1, and remains there when the other has left.
  EXPECT_EQ(count(node, 1, 1, {b, c}), Observed::kConsistent);
  ASSERT_TRUE(cluster.release(b).ok());
  ASSERT_EQ(states(node), 1U);
  EXPECT_EQ(cluster.belief_of(node)->states.front().gpus, GpuMask{1} << 4);  // the first of NUMA node 1 stands for it
}

TEST_F(ObserveTest, PodsThatAreNotCountedMayBeAnywhere) {
  const NodeId node = add(aligned());
  const AllocationId bound = find(node, 2, devices({0, 1}));
  find(node, 1, devices({2}));
  EXPECT_EQ(count(node, 2, 0, {bound}), Observed::kConsistent);
  EXPECT_EQ(states(node), 2U);
}

TEST_F(ObserveTest, AnotherCountThanForeseenIsAMismatch) {
  const NodeId node = add(aligned());
  const AllocationId a = place(node, 2);
  const AllocationId b = place(node, 2);
  EXPECT_EQ(reason(node, 4), Reason::kNone);  // kubelet fills NUMA node 0 first
  EXPECT_EQ(count(node, 2, 2, {a, b}), Observed::kMismatch);
  EXPECT_EQ(reason(node, 4), Reason::kTopologyAffinity);
  EXPECT_EQ(reason(node, 2), Reason::kNone);
  ASSERT_TRUE(cluster.release(a).ok());
  // The other has two of NUMA node 0, of node 1, or one of each: nothing is foreseen of it any more.
  EXPECT_EQ(states(node), 3U);
}

TEST_F(ObserveTest, SeenDevicesAreCertain) {
  const NodeId node = add(aligned());
  const AllocationId a = find(node, 2, devices({0, 1}));
  EXPECT_EQ(see(a, devices({5, 7})), Observed::kConsistent);
  EXPECT_EQ(cluster.belief_of(node), nullptr);
  EXPECT_EQ(cluster.allocation(a)->devices, devices({5, 7}));
  EXPECT_EQ(reason(node, 4), Reason::kNone);
  EXPECT_EQ(see(a, devices({5, 7})), Observed::kNothingNew);
}

TEST_F(ObserveTest, OtherDevicesThanForeseenAreAMismatchAndWhatFollowedIsForgotten) {
  const NodeId node = add(aligned());
  const AllocationId first = place(node, 2);
  const AllocationId second = place(node, 1);
  EXPECT_EQ(see(first, devices({4, 5})), Observed::kMismatch);
  EXPECT_EQ(cluster.allocation(first)->devices, devices({4, 5}));
  EXPECT_EQ(states(node), 2U);  // the second on either NUMA node
  EXPECT_EQ(see(second, devices({0})), Observed::kConsistent);
  EXPECT_EQ(cluster.belief_of(node), nullptr);
}

TEST_F(ObserveTest, APodGivesWayOnRecordToOneThatIsSeen) {
  const NodeId node = add(aligned());
  const AllocationId a = find(node, 2, devices({0, 1}));
  const AllocationId b = find(node, 2, devices({2, 3}));
  EXPECT_EQ(see(b, devices({1, 6})), Observed::kConsistent);
  EXPECT_EQ(cluster.allocation(b)->devices, devices({1, 6}));
  EXPECT_EQ(cluster.allocation(a)->devices, devices({0, 2}));  // the lowest that is free now
  EXPECT_EQ(cluster.totals().gpu_used, 4000);
}

TEST_F(ObserveTest, TwoPodsSeenWithOneDeviceAreAMismatchAndTheLastOneHasIt) {
  const NodeId node = add(aligned());
  const AllocationId a = find(node, 1, devices({0}));
  const AllocationId b = find(node, 1, devices({1}));
  EXPECT_EQ(see(a, devices({3})), Observed::kConsistent);
  EXPECT_EQ(see(b, devices({3})), Observed::kMismatch);
  EXPECT_EQ(cluster.allocation(b)->devices, devices({3}));
  EXPECT_NE(cluster.allocation(a)->devices, devices({3}));
  EXPECT_EQ(states(node), 2U);
}

TEST_F(ObserveTest, DedicatedCpusFollowFromTheDevices) {
  TopologySpec spec = aligned();
  spec.kubelet.cpu_static = true;
  const NodeId node = add(spec);
  const AllocationId a = place(node, 1);
  ASSERT_EQ(states(node), 4U);  // any GPU of NUMA node 0, with the first of its CPUs
  EXPECT_EQ(see(a, devices({2})), Observed::kConsistent);
  ASSERT_EQ(states(node), 1U);
  EXPECT_EQ(cluster.belief_of(node)->states.front().cpus.count(), 1U);
  // Which CPUs come with GPUs that kubelet was not to choose is not known.
  EXPECT_EQ(see(a, devices({6})), Observed::kMismatch);
  EXPECT_FALSE(cluster.belief_of(node)->complete);
}

TEST_F(ObserveTest, WhatCannotBeIsRefusedAndChangesNothing) {
  const NodeId node = add(aligned());
  const AllocationId a = find(node, 2, devices({0, 1}));
  const std::uint64_t before = cluster.version();
  EXPECT_EQ(cluster.observe_devices(a, devices({4})).message(), "the pod holds 2 GPUs, not 1");
  EXPECT_EQ(cluster.observe_devices(a, devices({4, 8})).message(), "the node has no such GPU");
  const std::vector<AllocationId> pods = {a};
  EXPECT_EQ(cluster.observe_count(node, {{0, 1}, {1, 2}}, pods).message(), "the pods hold 2 GPUs, not 3");
  EXPECT_EQ(cluster.observe_count(node, {{0, 5}}, pods).message(), "NUMA node 0 has 4 GPUs, not 5");
  EXPECT_EQ(cluster.observe_count(node, {{2, 2}}, pods).message(), "NUMA node 2 has no GPUs");
  EXPECT_EQ(cluster.version(), before);
  const NodeId ours = add(aligned(AssignmentMode::kEnforced));
  const AllocationId b = *cluster.adopt(cluster.intern(pod(1)), ours, devices({3}), Knowledge::kAssigned);
  EXPECT_EQ(cluster.observe_devices(b, devices({4})).message(), "the GPUs of the node are chosen here");
  PodRequest share = pod(1);
  share.gpu_milli = 500;
  ASSERT_TRUE(cluster.apply(cluster.intern(share), node, devices({7}), Knowledge::kExact).ok());
  EXPECT_EQ(cluster.observe_devices(a, devices({4, 5})).message(),
            "something else than kubelet hands out GPUs of the node, too");
}

TEST_F(ObserveTest, DevicesThatAPodWasToldToTakeAreItsOnlyWhereThatIsHonoured) {
  const ShapeId one = (cluster.expect_topologies(), cluster.intern(pod(1)));
  const NodeId ours = add(aligned(AssignmentMode::kEnforced));
  const NodeId theirs = add(aligned());
  ASSERT_TRUE(cluster.adopt(one, ours, devices({3}), Knowledge::kAssigned).ok());
  ASSERT_TRUE(cluster.adopt(one, theirs, devices({3}), Knowledge::kAssigned).ok());
  EXPECT_EQ(cluster.belief_of(ours), nullptr);
  EXPECT_EQ(states(theirs), 2U);
}

// Reports may come after the pods of a node were found.
TEST_F(ObserveTest, PodsFoundBeforeTheTopologyWasKnownMayHoldAnyDevices) {
  cluster.expect_topologies();
  NodeSpec spec{"late", 16'000, 128 * kGiB, 110, 8, "V100"};
  const NodeId node = *cluster.add_node(spec, 1);
  const AllocationId a = find(node, 2, devices({0, 1}));
  EXPECT_EQ(cluster.belief_of(node), nullptr);
  spec.topology = *table.intern(topology::read_synthetic(kTwoNodes, "test")->machine, aligned());
  ASSERT_TRUE(cluster.update_node(node, spec).ok());
  EXPECT_EQ(states(node), 3U);
  EXPECT_EQ(see(a, devices({4, 5})), Observed::kConsistent);
  EXPECT_EQ(cluster.belief_of(node), nullptr);
}

}  // namespace
}  // namespace mortise::placement
