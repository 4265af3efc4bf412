#include "scheduler/topology/device_manager.h"

#include <gtest/gtest.h>

namespace mortise::topology {
namespace {

Device device_on(NumaMask numa) {
  Device device;
  device.topology = DeviceTopology::kNodes;
  device.numa = numa;
  return device;
}

NodeState node_with(NumaMask all, std::vector<Device> devices) {
  NodeState node;
  node.nodes.all = all;
  node.devices.push_back({"gpu", std::move(devices)});
  return node;
}

HintList hints_for(const NodeState& node, std::int64_t count, const KubeletRules& rules = {}) {
  KubeletConfig config;
  config.rules = rules;
  const DeviceUse use = DeviceUse::of(node.devices[0], rules, std::nullopt);
  HintList hints = device_hints(node, config, use, ContainerAsk{}, DeviceAsk{0, count});
  std::sort(hints.begin(), hints.end(), [](const Hint& a, const Hint& b) { return narrower(a.mask, b.mask); });
  return hints;
}

TEST(DeviceHints, WidthIsJudgedByInstalledDevicesNotByFreeOnes) {
  // 2 + 2 installed, one free on each: two would fit on one node if it were empty, so {0,1} is not preferred.
  NodeState node = node_with(0b11, {device_on(1), device_on(1), device_on(2), device_on(2)});
  node.devices[0].devices[0].allocated = true;
  node.devices[0].devices[2].allocated = true;
  EXPECT_EQ(hints_for(node, 2), (HintList{{0b11, false}}));
}

TEST(DeviceHints, MoreThanANodeHoldsMakesTheWideMaskPreferred) {
  const NodeState node = node_with(0b11, {device_on(1), device_on(1), device_on(2), device_on(2)});
  EXPECT_EQ(hints_for(node, 3), (HintList{{0b11, true}}));
}

TEST(DeviceHints, UnhealthyDevicesCountAsInstalledOnly) {
  NodeState node = node_with(0b11, {device_on(1), device_on(2)});
  node.devices[0].devices[0].healthy = false;
  EXPECT_EQ(hints_for(node, 1), (HintList{{0b10, true}, {0b11, false}}));
}

TEST(DeviceHints, ADeviceOnSeveralNodesCountsInEachOfThem) {
  const NodeState node = node_with(0b11, {device_on(0b11), device_on(0b11)});
  EXPECT_EQ(hints_for(node, 2), (HintList{{0b01, true}, {0b10, true}, {0b11, false}}));
}

TEST(DeviceHints, WithoutAnyTopologyThereIsNoOpinion) {
  const NodeState node = node_with(0b11, {Device{}, Device{}});
  EXPECT_EQ(hints_for(node, 1), no_preference());
}

TEST(DeviceHints, DevicesWithoutTopologyAmongOthersAreInNoMask) {
  const NodeState node = node_with(0b11, {device_on(1), device_on(1), Device{}, Device{}});
  EXPECT_EQ(hints_for(node, 3), no_placement());  // three are free, but no mask holds three
}

TEST(DeviceHints, AnEmptyTopologyAlignsOnlyInOldKubelets) {
  Device empty;
  empty.topology = DeviceTopology::kEmpty;
  const NodeState node = node_with(0b11, {empty});
  EXPECT_EQ(hints_for(node, 1), no_preference());
  KubeletRules old;
  old.empty_topology_aligns = true;
  EXPECT_EQ(hints_for(node, 1, old), no_placement());
}

TEST(DeviceHints, NodesWithoutDevicesAreLeftOutSince136) {
  const NodeState node = node_with(0b0111, {device_on(0b001), device_on(0b010)});
  EXPECT_EQ(hints_for(node, 2), (HintList{{0b011, true}}));
  KubeletRules before;
  before.device_nodes_only = false;
  EXPECT_EQ(hints_for(node, 2, before), (HintList{{0b011, true}, {0b111, false}}));
}

TEST(DeviceHints, AnAskForZeroStillMakesHints) {
  const NodeState node = node_with(0b11, {device_on(1), device_on(2)});
  EXPECT_EQ(hints_for(node, 0), (HintList{{0b01, true}, {0b10, true}, {0b11, false}}));
}

TEST(DeviceHints, ReusedDevicesMustAllBeInside) {
  const NodeState node = node_with(0b11, {device_on(1), device_on(1), device_on(2)});
  DeviceUse use = DeviceUse::of(node.devices[0], {}, std::nullopt);
  use.available = {};
  use.reusable.insert(0);
  use.reusable.insert(2);
  const HintList hints = device_hints(node, {}, use, ContainerAsk{}, DeviceAsk{0, 1});
  EXPECT_EQ(hints, (HintList{{0b11, false}}));  // one device fits one node, but both reused ones must be inside
}

std::vector<DeviceResult> allocated(const NodeState& node, std::int64_t count, NumaMask affinity,
                                    const PreferredAllocation& preferred = {}, bool last = true) {
  const DeviceUse use = DeviceUse::of(node.devices[0], {}, std::nullopt);
  DeviceFollowUp follow_up{last, 100, true};
  std::vector<DeviceResult> results;
  const Refusal refusal =
      allocate_devices(node, {}, use, ContainerAsk{}, {0, count}, affinity, preferred, follow_up, results);
  EXPECT_FALSE(refusal.refused()) << refusal.message;
  return results;
}

TEST(DeviceAllocation, AlignedDevicesAreTakenFirst) {
  const NodeState node = node_with(0b11, {device_on(1), device_on(2), device_on(2), Device{}});
  const auto results = allocated(node, 3, 0b10);
  ASSERT_EQ(results.size(), 1U);
  IndexSet expected;  // both of node 1, then the one with another node, before the one without
  for (std::size_t i = 0; i < 3; ++i) expected.insert(i);
  EXPECT_EQ(results[0].grant.exact, expected);
  EXPECT_TRUE(results[0].grant.some.empty());
}

TEST(DeviceAllocation, WithoutAPreferenceTheChoiceIsOpen) {
  const NodeState node = node_with(0b11, {device_on(1), device_on(1), device_on(1), device_on(2)});
  const auto results = allocated(node, 2, 0b01);
  ASSERT_EQ(results.size(), 1U);
  ASSERT_EQ(results[0].grant.some.size(), 1U);
  EXPECT_EQ(results[0].grant.some[0].count, 2);
  EXPECT_EQ(results[0].grant.some[0].of.count(), 3U);
}

TEST(DeviceAllocation, WhatMattersLaterIsToldApart) {
  // Any two of 2 + 2: both on node 0, one on each, both on node 1.
  const NodeState node = node_with(0b11, {device_on(1), device_on(1), device_on(2), device_on(2)});
  EXPECT_EQ(allocated(node, 2, 0b11, {}, false).size(), 3U);
}

TEST(DeviceAllocation, ThePreferenceDecidesWithinTheMask) {
  const NodeState node = node_with(0b11, {device_on(1), device_on(1), device_on(1), device_on(2)});
  const PreferredAllocation highest_two = [](std::size_t, const IndexSet& available, const IndexSet&,
                                             std::int64_t) -> Result<IndexSet> {
    EXPECT_FALSE(available.contains(3));  // only aligned devices are offered
    IndexSet wish;
    wish.insert(1);
    wish.insert(2);
    return wish;
  };
  const auto results = allocated(node, 2, 0b01, highest_two);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].grant.exact.contains(1) && results[0].grant.exact.contains(2));
  EXPECT_EQ(results[0].grant.exact.count(), 2U);
}

TEST(DeviceAllocation, APreferenceThatIsTooShortIsFilledUp) {
  const NodeState node = node_with(0b1, {device_on(1), device_on(1), device_on(1)});
  const PreferredAllocation only_last = [](std::size_t, const IndexSet&, const IndexSet&,
                                           std::int64_t) -> Result<IndexSet> {
    IndexSet wish;
    wish.insert(2);
    return wish;
  };
  const auto results = allocated(node, 2, 0b1, only_last);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].grant.exact.contains(2));
  ASSERT_EQ(results[0].grant.some.size(), 1U);
  EXPECT_EQ(results[0].grant.some[0].of.count(), 2U);
}

TEST(DeviceAllocation, AFailingPluginFailsTheAdmission) {
  const NodeState node = node_with(0b1, {device_on(1), device_on(1)});
  const PreferredAllocation broken = [](std::size_t, const IndexSet&, const IndexSet&,
                                        std::int64_t) -> Result<IndexSet> { return Error{"gone"}; };
  DeviceFollowUp follow_up{true, 100, true};
  std::vector<DeviceResult> results;
  const DeviceUse use = DeviceUse::of(node.devices[0], {}, std::nullopt);
  const Refusal refusal = allocate_devices(node, {}, use, ContainerAsk{}, {0, 1}, 0b1, broken, follow_up, results);
  EXPECT_EQ(refusal.reason, Reason::kUnexpectedAdmission);
}

}  // namespace
}  // namespace mortise::topology
