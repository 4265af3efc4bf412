// Which pods have to go. The nodes are small enough to see the right answer by eye; tests/property compares with every
// set there is.
#include "scheduler/placement/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/topology/sources/synthetic.h"

namespace mortise::placement {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using topology::TopologyPolicy;

constexpr Bytes kGiB = 1024 * kMiB;
constexpr Nanoseconds kHour = 3600 * kSecond;

PodRequest pod(int gpus, MilliCpu cpu = 0, MilliGpu milli = kWholeGpu) {
  PodRequest request;
  request.name = "p";
  request.gpus = gpus;
  request.cpu = cpu;
  request.gpu_milli = milli;
  return request;
}

class PreemptionTest : public testing::Test {
 protected:
  /// A node of 8 GPUs, 64 CPUs and room for 40 pods.
  void plain_node(int gpus = 8) { add({"n", 64'000, 256 * kGiB, 40, gpus, "A100"}); }

  /// Two NUMA nodes of 8 CPUs and 4 GPUs.
  void numa_node(TopologyPolicy policy) {
    TopologySpec spec;
    spec.kubelet.policy = policy;
    NodeSpec node{"n", 16'000, 128 * kGiB, 40, 8, "A100"};
    node.topology = *table.intern(topology::read_synthetic("numa:2 cpu:8 memory:64Gi gpu:4", "test")->machine, spec);
    add(node);
  }

  void add(const NodeSpec& spec) { question.node = *cluster.add_node(spec, 0); }

  /// Puts a pod on these devices.
  void held(const PodRequest& request, std::initializer_list<int> on, std::int32_t priority, Nanoseconds running = 0) {
    DeviceSet devices;
    for (const int device : on) devices.insert(device);
    const auto applied = cluster.apply(cluster.intern(request), question.node, devices);
    ASSERT_TRUE(applied.ok()) << applied.message();
    question.pods.push_back({*applied, priority, running, false, {}});
  }

  std::optional<Eviction> evict_for(const PodRequest& request, std::int32_t priority) {
    question.pod = cluster.intern(request);
    question.priority = priority;
    EvictionBudget budget;
    auto found = cheapest_eviction(cluster, question, budget);
    EXPECT_TRUE(cluster.check().ok());
    return found;
  }
  std::vector<std::size_t> victims_for(const PodRequest& request, std::int32_t priority) {
    const auto found = evict_for(request, priority);
    if (!found) ADD_FAILURE() << "no eviction helps";
    return found ? found->victims : std::vector<std::size_t>{};
  }

  NodeTopologyTable table;
  ClusterState cluster;
  EvictionQuestion question;
};

TEST_F(PreemptionTest, WhatFitsNeedsNoVictim) {
  plain_node();
  held(pod(4), {0, 1, 2, 3}, 0);
  EXPECT_THAT(victims_for(pod(4), 10), IsEmpty());
}

TEST_F(PreemptionTest, OnlyPodsOfLowerPriorityGo) {
  plain_node();
  held(pod(4), {0, 1, 2, 3}, 10);
  held(pod(4), {4, 5, 6, 7}, 9);
  EXPECT_THAT(victims_for(pod(4), 10), ElementsAre(1));
  EXPECT_FALSE(evict_for(pod(5), 10).has_value());
  EXPECT_FALSE(evict_for(pod(4), 9).has_value());
}

TEST_F(PreemptionTest, WhatNoEvictionCanMendHasNoVictims) {
  plain_node();
  held(pod(8), {0, 1, 2, 3, 4, 5, 6, 7}, 0);
  EXPECT_FALSE(evict_for(pod(9), 10).has_value());
  PodRequest other = pod(1);
  other.models = {"H100"};
  EXPECT_FALSE(evict_for(other, 10).has_value());
}

TEST_F(PreemptionTest, TwoOfLowPriorityGoBeforeOneOfHigherPriority) {
  plain_node();
  held(pod(4), {0, 1, 2, 3}, 5);
  held(pod(2), {4, 5}, 1);
  held(pod(2), {6, 7}, 1);
  EXPECT_THAT(victims_for(pod(4), 10), UnorderedElementsAre(1, 2));
}

// Both need a victim of priority 5; beside it one pod of 1 rather than one of 4.
TEST_F(PreemptionTest, OfEqualHighestPrioritiesTheLowerSumGoes) {
  plain_node(4);
  held(pod(2), {0, 1}, 5);
  held(pod(1), {2}, 4);
  held(pod(1), {3}, 1);
  EXPECT_THAT(victims_for(pod(3), 10), ElementsAre(0, 2));
}

// The plain sum of two pods at -10 is the lowest, but nobody should go in vain.
TEST_F(PreemptionTest, NegativePrioritiesAreNoReasonToTakeMore) {
  plain_node(4);
  held(pod(2), {0, 1}, -10);
  held(pod(2), {2, 3}, -10);
  EXPECT_EQ(victims_for(pod(2), 0).size(), 1U);
}

// 1 GPU for 10 hours are 10 GPU-hours; 4 for 2 are 8.
TEST_F(PreemptionTest, OfEqualPrioritiesTheLeastGpuHoursAreLost) {
  plain_node();
  held(pod(4), {0, 1, 2, 3}, 1, 2 * kHour);
  held(pod(1), {4}, 1, 10 * kHour);
  held(pod(3), {5, 6, 7}, 7, 0);
  EXPECT_THAT(victims_for(pod(1), 5), ElementsAre(0));
  question.pods[0].running = 3 * kHour;  // 12
  EXPECT_THAT(victims_for(pod(1), 5), ElementsAre(1));
}

TEST_F(PreemptionTest, AShareLosesOnlyItsPart) {
  plain_node(2);
  held(pod(1, 0, 500), {0}, 1, 4 * kHour);   // 2 GPU-hours
  held(pod(1, 0, 1000), {1}, 1, 3 * kHour);  // 3
  EXPECT_THAT(victims_for(pod(1), 5), ElementsAre(0));
}

TEST_F(PreemptionTest, TheProposalDecidesBetweenEquals) {
  plain_node(2);
  held(pod(1), {0}, 1);
  held(pod(1), {1}, 1);
  question.pods[0].proposed = true;
  EXPECT_THAT(victims_for(pod(1), 5), ElementsAre(0));
  question.pods[0].proposed = false;
  question.pods[1].proposed = true;
  EXPECT_THAT(victims_for(pod(1), 5), ElementsAre(1));
}

TEST_F(PreemptionTest, ADisruptionBudgetCountsMoreThanPriority) {
  plain_node(2);
  held(pod(1), {0}, 1);
  held(pod(1), {1}, 3);
  question.budgets = {0};
  question.pods[0].budgets = {0};
  const auto found = evict_for(pod(1), 5);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->victims, ElementsAre(1));
  EXPECT_EQ(found->cost.pdb_violations, 0);
  const auto both = evict_for(pod(2), 5);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->cost.pdb_violations, 1);
}

TEST_F(PreemptionTest, ABudgetAllowsSoManyEvictions) {
  plain_node(3);
  for (const int device : {0, 1, 2}) held(pod(1), {device}, 1);
  question.budgets = {2};
  for (EvictablePod& each : question.pods) each.budgets = {0};
  EXPECT_EQ(evict_for(pod(2), 5)->cost.pdb_violations, 0);
  EXPECT_EQ(evict_for(pod(3), 5)->cost.pdb_violations, 1);
}

TEST_F(PreemptionTest, TheMostImportantVictimComesFirst) {
  plain_node(3);
  held(pod(1), {0}, 1, kHour);
  held(pod(1), {1}, 3);
  held(pod(1), {2}, 1, 2 * kHour);
  EXPECT_THAT(victims_for(pod(3), 5), ElementsAre(1, 2, 0));
}

// Two GPUs are free on each NUMA node. By count one pod of 1 GPU would do.
TEST_F(PreemptionTest, VictimsMakeRoomOnOneNumaNode) {
  numa_node(TopologyPolicy::kSingleNumaNode);
  held(pod(1), {0}, 1);
  held(pod(1), {1}, 3);
  held(pod(1), {4}, 1);
  held(pod(1), {5}, 2);
  EXPECT_THAT(victims_for(pod(3), 5), ElementsAre(2));     // or the one on GPU 0: of equals, the later goes
  EXPECT_THAT(victims_for(pod(4), 5), ElementsAre(3, 2));  // NUMA node 1 is cheaper than node 0 with its 3
  EXPECT_FALSE(evict_for(pod(5), 5).has_value());          // no NUMA node has five
}

TEST_F(PreemptionTest, APodWithoutGpusGoesOnlyForCpuOrMemory) {
  plain_node(2);
  held(pod(0, 60'000), {}, 0);
  held(pod(2), {0, 1}, 1);
  EXPECT_THAT(victims_for(pod(1, 1000), 5), ElementsAre(1));
  EXPECT_THAT(victims_for(pod(1, 8000), 5), ElementsAre(1, 0));
}

TEST_F(PreemptionTest, ABlockedNodeStaysBlockedWhoeverGoes) {
  NodeSpec node{"n", 64'000, 256 * kGiB, 40, 2, "A100"};
  node.blocked = true;
  add(node);
  held(pod(2), {0, 1}, 0);
  EXPECT_FALSE(evict_for(pod(1), 5).has_value());
}

// 32 shares on 8 GPUs: four of them free a GPU, and which four is easily seen, but not by trying all sets of 32.
TEST_F(PreemptionTest, OnACrowdedNodeTheSearchEndsWithASufficientSet) {
  plain_node();
  for (int i = 0; i < 32; ++i) held(pod(1, 0, 250), {i % 8}, 1 + i % 8);
  const auto found = evict_for(pod(2), 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->victims.size(), 8U);
  EXPECT_EQ(found->cost.highest_priority, 2);
}

// The budget of a request is gone: still a sufficient set, from which nobody can be spared.
TEST_F(PreemptionTest, WithoutBudgetTheFirstSolutionIsGiven) {
  plain_node();
  for (int device = 0; device < 8; ++device) held(pod(1), {device}, 1 + device);
  question.pod = cluster.intern(pod(3));
  question.priority = 100;
  EvictionBudget budget{0};
  const auto found = cheapest_eviction(cluster, question, budget);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->cheapest);
  EXPECT_THAT(found->victims, ElementsAre(2, 1, 0));
}

}  // namespace
}  // namespace mortise::placement
