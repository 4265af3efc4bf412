// Where the topology of a node decides. The machines are small enough to see the right answer by eye.
#include "scheduler/placement/node_insides.h"

#include <gtest/gtest.h>

#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::placement {
namespace {

using topology::TopologyPolicy;

constexpr Bytes kGiB = 1024 * kMiB;
// Two NUMA nodes of 8 CPUs, 64 GiB and 4 GPUs; no NVLink.
constexpr const char* kPcie = "numa:2 cpu:8 memory:64Gi gpu:4";
// Four GPUs on one NUMA node: 0-1 and 2-3 have NVLinks.
constexpr const char* kPairs = "numa:1 cpu:16 memory:64Gi gpu:4 nvlink:0-1*2,2-3*2 model:V100";

PodRequest pod(int gpus, MilliCpu cpu = 1000) {
  PodRequest request;
  request.name = "p";
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

class NodeInsidesTest : public ::testing::Test {
 protected:
  NodeId add(const std::string& machine, TopologySpec spec = {}) {
    auto topology = table.intern(topology::read_synthetic(machine, "test")->machine, std::move(spec));
    EXPECT_TRUE(topology.ok()) << topology.message();
    NodeSpec node{"n" + std::to_string(cluster.node_count()), 16'000, 128 * kGiB, 110, (*topology)->gpus(), "V100"};
    node.topology = *topology;
    return *cluster.add_node(node, cluster.node_count());
  }

  Reason reason(NodeId node, const PodRequest& request) {
    return cluster.topology_reason(cluster.state_of(node), cluster.shapes().shape(cluster.intern(request)));
  }
  DeviceSet choice(NodeId node, const PodRequest& request,
                   std::optional<topology::Objective> objective = std::nullopt) {
    return cluster.choose_devices(cluster.state_of(node), cluster.shapes().shape(cluster.intern(request)), objective);
  }
  AllocationId apply(NodeId node, const PodRequest& request, const DeviceSet& on,
                     Knowledge knowledge = Knowledge::kExact) {
    auto applied = cluster.apply(cluster.intern(request), node, on, knowledge);
    EXPECT_TRUE(applied.ok()) << applied.message();
    return *applied;
  }

  static TopologySpec kubelet(TopologyPolicy policy, bool cpu_static = false) {
    TopologySpec spec;
    spec.kubelet.policy = policy;
    spec.kubelet.cpu_static = cpu_static;
    return spec;
  }

  NodeTopologyTable table;
  ClusterState cluster;
};

TEST_F(NodeInsidesTest, NodesAlikeShareOneTopologyAndOneState) {
  const NodeId a = add(kPcie);
  const NodeId b = add(kPcie);
  EXPECT_EQ(cluster.node_state(a), cluster.node_state(b));
  EXPECT_EQ(cluster.topology_of(cluster.machine_of(a)), cluster.topology_of(cluster.machine_of(b)));
  EXPECT_NE(cluster.node_state(a), cluster.node_state(add(kPcie, kubelet(TopologyPolicy::kRestricted))));
}

TEST_F(NodeInsidesTest, ATopologyWithAnotherNumberOfGpusIsRefused) {
  auto topology = table.intern(topology::read_synthetic(kPcie, "test")->machine, {});
  NodeSpec node{"n", 16'000, 128 * kGiB, 110, 7, "V100"};
  node.topology = *topology;
  EXPECT_EQ(cluster.add_node(node, 0).message(), "node 'n': 7 GPUs, but a topology of 8");
}

TEST_F(NodeInsidesTest, SingleNumaNodeRefusesWhatIsLeftOnTwoNodes) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kSingleNumaNode));
  apply(node, pod(2), devices({0, 1}));
  apply(node, pod(2), devices({4, 5}));
  EXPECT_EQ(reason(node, pod(2)), Reason::kNone);
  EXPECT_EQ(reason(node, pod(3)), Reason::kTopologyAffinity);  // two are free on either node
  EXPECT_EQ(reason(node, pod(5)), Reason::kTopologyNever);     // a node has four
}

TEST_F(NodeInsidesTest, RestrictedRefusesToSpreadWhatOneNodeCouldHold) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kRestricted));
  apply(node, pod(2), devices({0, 1}));
  apply(node, pod(2), devices({4, 5}));
  EXPECT_EQ(reason(node, pod(3)), Reason::kTopologyAffinity);
  EXPECT_EQ(reason(node, pod(4)), Reason::kTopologyAffinity);
  EXPECT_EQ(reason(add(kPcie, kubelet(TopologyPolicy::kRestricted)), pod(5)), Reason::kNone);  // needs both anyway
}

TEST_F(NodeInsidesTest, DedicatedCpusAndGpusMustBeOnOneNode) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kSingleNumaNode, true));
  apply(node, pod(0, 6000), {});  // six of the eight CPUs of NUMA node 0
  const PodRequest four = pod(4, 4000);
  EXPECT_EQ(choice(node, four), devices({4, 5, 6, 7}));  // only NUMA node 1 has four CPUs left
  apply(node, four, choice(node, four));
  EXPECT_EQ(reason(node, pod(1, 2000)), Reason::kNone);
  EXPECT_EQ(reason(node, pod(1, 3000)), Reason::kTopologyAffinity);
  PodRequest shared = pod(1, 3000);
  shared.qos = topology::QosClass::kBurstable;  // takes no CPUs of its own
  EXPECT_EQ(reason(node, shared), Reason::kNone);
}

TEST_F(NodeInsidesTest, WhatKubeletCannotHaveDoneLeavesTheNodeUnknownUntilThePodIsGone) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kSingleNumaNode, true));
  const AllocationId odd = apply(node, pod(2, 2000), devices({0, 4}));  // two NUMA nodes
  EXPECT_EQ(reason(node, pod(1)), Reason::kTopologyState);
  ASSERT_TRUE(cluster.release(odd).ok());
  EXPECT_EQ(reason(node, pod(1)), Reason::kNone);
}

TEST_F(NodeInsidesTest, ReleaseGivesCpusBack) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kSingleNumaNode, true));
  const StateId before = cluster.node_state(node);
  const AllocationId held = apply(node, pod(4, 8000), choice(node, pod(4, 8000)));
  EXPECT_NE(cluster.belief_of(node), nullptr);
  ASSERT_TRUE(cluster.release(held).ok());
  EXPECT_EQ(cluster.node_state(node), before);
  EXPECT_TRUE(cluster.check().ok());
}

TEST_F(NodeInsidesTest, APredictedPodMayHoldAnyOfTheGpusThePluginFindsAlike) {
  const NodeId node = add(kPcie);
  const PodRequest one = pod(1);
  apply(node, one, choice(node, one), Knowledge::kPredicted);
  ASSERT_NE(cluster.belief_of(node), nullptr);
  EXPECT_EQ(cluster.belief_of(node)->states.size(), 8U);  // one GPU alone: all eight are alike to the plugin
  PodRequest aligned = pod(4);
  aligned.topology_policy = TopologyPolicy::kSingleNumaNode;
  // The plugin prefers four of one PCIe tree, and one of the two trees is still whole, whichever GPU is taken.
  EXPECT_EQ(reason(node, aligned), Reason::kNone);
  apply(node, one, choice(node, one), Knowledge::kPredicted);
  EXPECT_EQ(cluster.belief_of(node)->states.size(), 28U);        // 8 over 2
  EXPECT_EQ(reason(node, aligned), Reason::kTopologyGuarantee);  // the two may be on different trees
}

TEST_F(NodeInsidesTest, ReleaseOfUncertainPodsMakesTheNodeCertainAgain) {
  const NodeId node = add(kPcie);
  const StateId before = cluster.node_state(node);
  const AllocationId first = apply(node, pod(1), choice(node, pod(1)), Knowledge::kPredicted);
  const AllocationId second = apply(node, pod(1), choice(node, pod(1)), Knowledge::kPredicted);
  ASSERT_TRUE(cluster.release(first).ok());
  EXPECT_EQ(cluster.belief_of(node)->states.size(), 8U);
  ASSERT_TRUE(cluster.release(second).ok());
  EXPECT_EQ(cluster.node_state(node), before);
}

TEST_F(NodeInsidesTest, PodsWithUnknownDevicesLeaveCountsPerNumaNodeOpen) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kSingleNumaNode));
  apply(node, pod(2), devices({0, 1}), Knowledge::kUnknown);
  // Two of NUMA node 0, one of each, or two of node 1.
  ASSERT_NE(cluster.belief_of(node), nullptr);
  EXPECT_EQ(cluster.belief_of(node)->states.size(), 3U);
  EXPECT_EQ(reason(node, pod(3)), Reason::kNone);              // at least one node has three or more left
  EXPECT_EQ(reason(node, pod(4)), Reason::kTopologyAffinity);  // with one of each, none has four
}

TEST_F(NodeInsidesTest, NvlinkRequiredNeedsLinkedGpusForSure) {
  const NodeId node = add(kPairs);
  PodRequest linked = pod(2);
  linked.nvlink = NvlinkWish::kRequired;
  EXPECT_EQ(reason(node, linked), Reason::kNone);  // the plugin takes a pair with NVLinks
  apply(node, pod(1), devices({0}));
  EXPECT_EQ(reason(node, linked), Reason::kNone);  // 2-3 is still whole
  apply(node, pod(1), devices({2}));
  EXPECT_EQ(reason(node, linked), Reason::kTopologyGuarantee);
  PodRequest all = pod(4);
  all.nvlink = NvlinkWish::kRequired;
  EXPECT_EQ(reason(node, all), Reason::kTopologyNever);  // two islands
}

TEST_F(NodeInsidesTest, WishesOnNodesWithoutTopologyCannotBeMet) {
  const NodeId node = *cluster.add_node({"plain", 16'000, 128 * kGiB, 110, 8, "V100"}, 0);
  PodRequest linked = pod(2);
  linked.nvlink = NvlinkWish::kRequired;
  EXPECT_EQ(reason(node, linked), Reason::kTopologyUnknown);
  EXPECT_EQ(reason(node, pod(2)), Reason::kNone);
}

TEST_F(NodeInsidesTest, OneGpuNeedsNoNvlinkAndNoTopology) {
  const NodeId node = *cluster.add_node({"plain", 16'000, 128 * kGiB, 110, 8, "V100"}, 0);
  PodRequest one = pod(1);
  one.nvlink = NvlinkWish::kRequired;
  EXPECT_EQ(reason(node, one), Reason::kNone);
}

TEST_F(NodeInsidesTest, AnExplicitAskForNoGpuIsAligned) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kRestricted, true));
  PodRequest request = pod(1, 0);
  ContainerAsk first{"a", ContainerKind::kApp, 1000, kGiB, 1, kWholeGpu, true};
  ContainerAsk second{"b", ContainerKind::kApp, 12'000, kGiB, 0, kWholeGpu, false};  // needs both NUMA nodes
  request.asks = {first, second};
  EXPECT_EQ(reason(node, request), Reason::kNone);
  // "nvidia.com/gpu: 0" makes hints for single NUMA nodes, which 12 CPUs do not have.
  request.asks[1].kubelet_gpus = true;
  EXPECT_EQ(reason(node, request), Reason::kTopologyNever);
}

TEST_F(NodeInsidesTest, WhatKubeletDoesNotHandOutIsNotAligned) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kRestricted, true));
  PodRequest request = pod(1, 12'000);
  request.asks = {{"a", ContainerKind::kApp, 12'000, kGiB, 1, kWholeGpu, false}};  // 1000 thousandths of a GPU
  EXPECT_EQ(reason(node, request), Reason::kNone);
  EXPECT_EQ(choice(node, request), devices({0}));
  request.asks[0].kubelet_gpus = true;
  EXPECT_EQ(reason(node, request), Reason::kTopologyNever);
}

TEST_F(NodeInsidesTest, BesideSharesNothingIsForeseen) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kRestricted));
  PodRequest share = pod(1);
  share.gpu_milli = 500;
  const AllocationId held = apply(node, share, devices({0}));
  // Kubelet takes all eight for free and may put the next pod on the shared one.
  EXPECT_EQ(reason(node, pod(1)), Reason::kTopologyState);
  ASSERT_TRUE(cluster.release(held).ok());
  EXPECT_EQ(reason(node, pod(1)), Reason::kNone);
}

TEST_F(NodeInsidesTest, ManyContainersAreFollowedByCounts) {
  TopologySpec spec = kubelet(TopologyPolicy::kNone, true);
  // Without the ways between the GPUs the plugin may choose any: 8 containers could go 8! ways.
  const NodeId node = add(kPcie, spec);
  PodRequest request = pod(8, 0);
  for (int i = 0; i < 8; ++i) {
    request.asks.push_back({"c" + std::to_string(i), ContainerKind::kApp, 0, 0, 1, kWholeGpu, true});
  }
  EXPECT_EQ(reason(node, request), Reason::kNone);  // policy none refuses nobody
}

TEST_F(NodeInsidesTest, APodThatWantsOneNumaNodeWantsItsCpusThereToo) {
  const NodeId node = add(kPcie, kubelet(TopologyPolicy::kBestEffort, true));
  PodRequest request = pod(1, 12'000);
  request.topology_policy = TopologyPolicy::kSingleNumaNode;
  EXPECT_EQ(reason(node, request), Reason::kTopologyNever);  // no NUMA node has twelve CPUs
  request.cpu = 6000;
  EXPECT_EQ(reason(node, request), Reason::kNone);
}

TEST_F(NodeInsidesTest, WholeCoresNeedToBeKnown) {
  TopologySpec spec = kubelet(TopologyPolicy::kNone, true);
  spec.kubelet.cpu.full_pcpus_only = true;
  auto machine = topology::read_synthetic("numa:1 cpu:16x2 memory:64Gi gpu:2", "test")->machine;
  EXPECT_EQ(table.intern(machine, spec).message(),
            "an option of the CPU manager needs to know which CPUs are threads of one core, which no source tells for "
            "NUMA node 0");
}

TEST_F(NodeInsidesTest, WhereWeChooseTheFastestPairIsTaken) {
  TopologySpec enforced;
  enforced.mode = AssignmentMode::kEnforced;
  const NodeId node = add(kPairs, enforced);
  apply(node, pod(1), devices({0}));
  EXPECT_EQ(choice(node, pod(2), topology::Objective::kBottleneck), devices({2, 3}));
  EXPECT_EQ(choice(node, pod(2)), devices({1, 2}));  // the first free ones, without an objective
}

TEST_F(NodeInsidesTest, PolicyTopologyTakesTheNodeWithTheFastestSetLeft) {
  const NodeId split = add(kPairs);
  const NodeId whole = add(kPairs);
  apply(split, pod(1), devices({0}));
  apply(split, pod(1), devices({2}));
  apply(whole, pod(2), devices({0, 1}));
  Engine engine(cluster, *make_policy("topology", TypicalPods()), 1);
  const Decision decision = engine.plan(pod(2));
  ASSERT_TRUE(std::holds_alternative<Placed>(decision));
  EXPECT_EQ(std::get<Placed>(decision).node, whole);
  EXPECT_EQ(std::get<Placed>(decision).devices, devices({2, 3}));
}

TEST_F(NodeInsidesTest, PolicyTopologyKeepsPairsWholeForSingleGpus) {
  const NodeId broken = add(kPairs);
  apply(broken, pod(1), devices({0}));
  const NodeId fresh = add(kPairs);
  Engine engine(cluster, *make_policy("topology", TypicalPods()), 1);
  const Decision decision = engine.plan(pod(1));
  ASSERT_TRUE(std::holds_alternative<Placed>(decision));
  EXPECT_EQ(std::get<Placed>(decision).node, broken) << "node " << fresh.value << " has two whole pairs to lose";
}

TEST_F(NodeInsidesTest, ManagersNeedAMachineThatTellsEnough) {
  auto machine = topology::read_synthetic("numa:2 gpu:4", "test")->machine;
  TopologySpec spec;
  spec.kubelet.memory_static = true;
  EXPECT_EQ(table.intern(machine, spec).message(),
            "memory manager Static needs the memory of NUMA node 0, which no source tells");
}

}  // namespace
}  // namespace mortise::placement
