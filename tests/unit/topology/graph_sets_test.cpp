#include "scheduler/topology/graph_sets.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace mortise::topology {
namespace {

// `gpus` GPUs and one NIC; the class of the way from each GPU in `ways` to it.
std::shared_ptr<const NodeGraph> graph_of(int gpus, const std::vector<LinkClass>& ways) {
  Machine machine;
  for (int i = 0; i < gpus; ++i) {
    machine.gpus.emplace_back();
    machine.gpus.back().index = i;
  }
  if (!ways.empty()) machine.nics.emplace_back().name = "NIC0";
  for (int i = 0; i < static_cast<int>(ways.size()); ++i) {
    machine.nic_links.push_back({i, 0, ways[static_cast<std::size_t>(i)]});
  }
  const auto graph = NodeGraph::build(machine);
  EXPECT_TRUE(graph.ok()) << graph.message();
  return *graph;
}

TEST(NicDistances, GrowWithTheClassOfTheNearestNic) {
  const std::vector<LinkClass> ways = {LinkClass::kPix,  LinkClass::kPxb, LinkClass::kPhb,
                                       LinkClass::kNode, LinkClass::kSys, LinkClass::kSoc};
  // SOC is the old name of SYS; the last GPU's way is not known.
  EXPECT_EQ(nic_distances(*graph_of(7, ways)), (std::vector<int>{0, 1, 2, 3, 4, 4, 4}));
}

TEST(NicDistances, DoNotMatterWithoutNics) {
  EXPECT_TRUE(nic_distances(*graph_of(3, {})).empty());
}

TEST(DeviceSetsOfAGraph, PreferGpusNearANicAmongAlikeOnes) {
  const auto far = LinkClass::kSys;
  const auto sets = device_sets_of(*graph_of(4, {far, far, LinkClass::kPix, far}));
  ASSERT_TRUE(sets.ok()) << sets.message();
  EXPECT_EQ(sets->best(Objective::kBottleneck, sets->all(), 1), gpu_bit(2));
  EXPECT_EQ(sets->best(Objective::kBottleneck, sets->all(), 2), gpu_bit(0) | gpu_bit(2));
}

TEST(DeviceSetsOfAGraph, AreRefusedAboveSixteenGpus) {
  EXPECT_TRUE(device_sets_of(*graph_of(16, {})).ok());
  const auto sets = device_sets_of(*graph_of(17, {}));
  ASSERT_FALSE(sets.ok());
  EXPECT_EQ(sets.message(), "bandwidth: 17 GPUs; device sets are made for 0 to 16");
}

}  // namespace
}  // namespace mortise::topology
