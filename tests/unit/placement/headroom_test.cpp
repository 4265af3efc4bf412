#include "scheduler/placement/headroom.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::placement {
namespace {

using topology::TopologyPolicy;

constexpr const char* kTwoNumas = "numa:2 cpu:16 memory:64Gi gpu:4";

PodRequest pod(std::int32_t gpus, MilliGpu gpu_milli = kWholeGpu) {
  PodRequest request;
  request.name = "p";
  request.gpus = gpus;
  request.gpu_milli = gpu_milli;
  return request;
}

class HeadroomTest : public testing::TestWithParam<const char*> {
 protected:
  NodeId add(NodeSpec spec, std::optional<TopologyPolicy> kubelet = std::nullopt) {
    spec.name = "n" + std::to_string(cluster_.node_count());
    spec.cpu = 64'000;
    spec.memory = 256 * 1024 * kMiB;
    if (kubelet) {
      TopologySpec topology;
      topology.kubelet.policy = *kubelet;
      spec.topology = *table_.intern(topology::read_synthetic(kTwoNumas, "test")->machine, topology);
    }
    return *cluster_.add_node(spec, cluster_.node_count());
  }
  NodeId add(std::int32_t gpus, std::int32_t pods = 110, std::optional<TopologyPolicy> kubelet = std::nullopt) {
    NodeSpec spec;
    spec.gpus = gpus;
    spec.pods = pods;
    return add(spec, kubelet);
  }
  AllocationId take(NodeId node, const PodRequest& request, std::initializer_list<int> devices) {
    DeviceSet set;
    for (const int device : devices) set.insert(device);
    return *cluster_.apply(cluster_.intern(request), node, set);
  }

  NodeTopologyTable table_;
  ClusterState cluster_;
};

using Pods = std::array<std::int64_t, 4>;

TEST_F(HeadroomTest, CountsPodsOfEachSizeOnTheirOwn) {
  HeadroomMeter meter(cluster_, std::nullopt);
  EXPECT_EQ(meter.measure(), Headroom{});
  const NodeId partly = add(8);
  take(partly, pod(3), {0, 1, 2});
  EXPECT_EQ(meter.measure().pods, (Pods{5, 2, 1, 0}));
  EXPECT_EQ(meter.measure().free_nodes, 0);
  add(8, 3);  // takes three pods, whatever they ask for: 3, 3, 2, 1
  EXPECT_EQ(meter.measure().pods, (Pods{8, 5, 3, 1}));
  EXPECT_EQ(meter.measure().free_nodes, 1);
  const AllocationId share = take(add(2), pod(1, 500), {1});  // one GPU is whole
  EXPECT_EQ(meter.measure().pods, (Pods{9, 5, 3, 1}));
  ASSERT_TRUE(cluster_.release(share).ok());
  EXPECT_EQ(meter.measure().pods, (Pods{10, 6, 3, 1}));
  EXPECT_EQ(meter.measure().free_nodes, 2);
}

TEST_F(HeadroomTest, NodesThatTakeNoPodsHaveNone) {
  NodeSpec cordoned;
  cordoned.gpus = 8;
  cordoned.pods = 110;
  NodeSpec blocked = cordoned;
  cordoned.schedulable = false;
  blocked.blocked = true;
  add(cordoned);
  add(blocked);
  add(0);
  EXPECT_EQ(HeadroomMeter(cluster_, std::nullopt).measure(), Headroom{});
}

// Two free GPUs on one NUMA node, three on the other. By count one pod of 4 would fit, but the machine could give it
// four on one NUMA node, so a restricted kubelet refuses it two.
TEST_F(HeadroomTest, WhatKubeletWouldRefuseDoesNotCount) {
  HeadroomMeter meter(cluster_, std::nullopt);
  add(1);  // measured once before any topology is known
  EXPECT_EQ(meter.measure().pods, (Pods{1, 0, 0, 0}));
  const NodeId node = add(8, 110, TopologyPolicy::kRestricted);
  EXPECT_EQ(meter.measure().pods, (Pods{9, 4, 2, 1}));
  take(node, pod(2), {0, 1});
  take(node, pod(1), {4});
  EXPECT_EQ(meter.measure().pods, (Pods{6, 2, 0, 0}));
}

/// Places pods of one size until none fits, and takes them back.
std::int64_t brute_force(Engine& engine, ClusterState& cluster, const PodRequest& request) {
  const ClusterState::Mark mark = cluster.mark();
  std::int64_t placed = 0;
  for (;;) {
    const Decision decision = engine.plan(request);
    const auto* place = std::get_if<Placed>(&decision);
    if (place == nullptr) break;
    EXPECT_TRUE(engine.commit(request, *place, Knowledge::kPredicted).ok());
    ++placed;
  }
  cluster.undo(mark);
  return placed;
}

TEST_P(HeadroomTest, IsWhatPlacingOneAfterAnotherGives) {
  std::mt19937 draw(7);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::int32_t>(draw() % bound); };
  const std::vector<std::optional<TopologyPolicy>> kubelets = {
      std::nullopt, TopologyPolicy::kNone, TopologyPolicy::kRestricted, TopologyPolicy::kSingleNumaNode};
  for (int node = 0; node < 12; ++node) {
    const auto kubelet = kubelets[static_cast<std::size_t>(below(4))];
    add(kubelet ? 8 : below(9), 1 + below(12), kubelet);
  }
  const TypicalPods typical;
  Engine engine(cluster_, *make_policy(GetParam(), typical), 1);
  HeadroomMeter meter(cluster_, engine.device_objective());
  std::vector<AllocationId> held;
  for (int step = 0; step < 120; ++step) {
    if (!held.empty() && below(3) == 0) {
      const auto which = static_cast<std::size_t>(below(static_cast<std::uint32_t>(held.size())));
      ASSERT_TRUE(cluster_.release(held[which]).ok());
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      const PodRequest arriving = below(3) == 0 ? pod(1, 100 * (1 + below(9))) : pod(1 + below(4));
      const Decision decision = engine.plan(arriving);
      if (const auto* placed = std::get_if<Placed>(&decision)) {
        held.push_back(*engine.commit(arriving, *placed, Knowledge::kPredicted));
      }
    }
    const Headroom measured = meter.measure();
    for (std::size_t i = 0; i < kHeadroomSizes.size(); ++i) {
      ASSERT_EQ(measured.pods[i], brute_force(engine, cluster_, pod(kHeadroomSizes[i])))
          << "pods of " << kHeadroomSizes[i] << " GPUs at step " << step;
    }
    ASSERT_EQ(meter.measure(), measured) << "taking everything back changes nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, HeadroomTest, testing::Values("first-fit", "best-fit", "topology"));

}  // namespace
}  // namespace mortise::placement
