#include "scheduler/topology/memory_static.h"

#include <gtest/gtest.h>

namespace mortise::topology {
namespace {

NodeState two_nodes(Bytes each) {
  NodeState node;
  node.nodes.all = 0b11;
  node.memory_types = {"memory"};
  node.memory.resize(2);
  for (int id = 0; id < 2; ++id) {
    NumaMemory& memory = node.memory[static_cast<std::size_t>(id)];
    memory.allocatable[0] = memory.free[0] = each;
    memory.group = numa_bit(id);
  }
  return node;
}

ContainerAsk asking(Bytes size, ContainerRole role = ContainerRole::kApp) {
  ContainerAsk container;
  container.role = role;
  container.memory = {{0, size}};
  return container;
}

HintList sorted(HintList hints) {
  std::sort(hints.begin(), hints.end(), [](const Hint& a, const Hint& b) { return narrower(a.mask, b.mask); });
  return hints;
}

TEST(MemoryHints, NarrowestNodesThatCouldHoldItArePreferred) {
  const NodeState node = two_nodes(100);
  const MemoryUse use{node.memory, {}};
  EXPECT_EQ(sorted(memory_hints(node, use, asking(60))[0]), (HintList{{0b01, true}, {0b10, true}, {0b11, false}}));
  EXPECT_EQ(sorted(memory_hints(node, use, asking(150))[0]), (HintList{{0b11, true}}));
}

TEST(MemoryHints, ANodeInUseByItselfIsInNoGroup) {
  NodeState node = two_nodes(100);
  take_memory(node.memory, {0b01, 0, 10});
  const MemoryUse use{node.memory, {}};
  EXPECT_EQ(sorted(memory_hints(node, use, asking(60))[0]), (HintList{{0b01, true}, {0b10, true}}));
  // 150 would need both nodes, which is not allowed: no opinion at all, not "impossible".
  EXPECT_TRUE(memory_hints(node, use, asking(150)).empty());
}

TEST(MemoryHints, NodesOfAGroupServeThatGroupOnly) {
  NodeState node = two_nodes(100);
  take_memory(node.memory, {0b11, 0, 120});
  const MemoryUse use{node.memory, {}};
  EXPECT_EQ(node.memory[0].free[0], 0);  // the lower node is emptied first
  EXPECT_EQ(node.memory[1].free[0], 80);
  EXPECT_EQ(sorted(memory_hints(node, use, asking(60))[0]), (HintList{{0b11, false}}));
}

TEST(MemoryHints, EveryAskedTypeGetsItsOwnList) {
  NodeState node = two_nodes(100);
  node.memory_types.push_back("hugepages-2Mi");
  for (NumaMemory& memory : node.memory) memory.allocatable[1] = memory.free[1] = 8;
  node.memory[0].free[1] = 2;
  ContainerAsk container = asking(60);
  container.memory.push_back({1, 6});
  const auto lists = memory_hints(node, MemoryUse{node.memory, {}}, container);
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(lists[0], lists[1]);
  EXPECT_EQ(sorted(lists[0]), (HintList{{0b10, true}, {0b11, false}}));
}

TEST(MemoryHints, BlocksFromACheckpointGiveTheirOwnNodes) {
  const NodeState node = two_nodes(100);
  ContainerAsk container = asking(60);
  container.assigned.memory = {{0b10, 0, 60}};
  const MemoryUse use{node.memory, {}};
  EXPECT_EQ(memory_hints(node, use, container)[0], (HintList{{0b10, true}}));
  container.assigned.memory[0].size = 50;  // not what is asked for: no opinion
  EXPECT_TRUE(memory_hints(node, use, container).empty());
}

TEST(MemoryOfPod, SumsAppsAndSidecarsAndSeesInitContainers) {
  PodAsk pod;
  pod.containers = {asking(50, ContainerRole::kSidecar), asking(90, ContainerRole::kInit), asking(30)};
  // Sidecar and app together 80; the init container runs beside the sidecar: 140.
  const auto total = memory_of_pod(pod);
  ASSERT_EQ(total.size(), 1U);
  EXPECT_EQ(total[0].size, 140);
}

TEST(AllocateMemory, TheAffinityIsWidenedWhenItCannotHoldTheMemory) {
  const NodeState node = two_nodes(100);
  MemoryUse use{node.memory, {}};
  NumaMask pinned = 0;
  EXPECT_FALSE(allocate_memory(node, use, asking(150), {0b01, false}, pinned).refused());
  EXPECT_EQ(pinned, 0b11U);
  EXPECT_EQ(use.nodes[0].free[0], 0);
  EXPECT_EQ(use.nodes[1].free[0], 50);
}

TEST(AllocateMemory, NoRoomIsAnUnexpectedAdmissionError) {
  NodeState node = two_nodes(100);
  take_memory(node.memory, {0b01, 0, 56});
  MemoryUse use{node.memory, {}};
  NumaMask pinned = 0;
  const Refusal refusal = allocate_memory(node, use, asking(150), {0b11, true}, pinned);
  EXPECT_EQ(refusal.reason, Reason::kUnexpectedAdmission);
}

TEST(AllocateMemory, AnInitContainersMemoryIsUsedAgain) {
  const NodeState node = two_nodes(100);
  MemoryUse use{node.memory, {}};
  NumaMask pinned = 0;
  EXPECT_FALSE(allocate_memory(node, use, asking(80, ContainerRole::kInit), {0b01, true}, pinned).refused());
  EXPECT_EQ(use.nodes[0].free[0], 20);
  // The app container asks for 90: 80 are reused, 10 more are taken.
  const HintList hints = sorted(memory_hints(node, use, asking(90))[0]);
  EXPECT_EQ(hints, (HintList{{0b01, true}, {0b10, true}}));
  EXPECT_FALSE(allocate_memory(node, use, asking(90), {0b01, true}, pinned).refused());
  EXPECT_EQ(use.nodes[0].free[0], 10);
}

}  // namespace
}  // namespace mortise::topology
