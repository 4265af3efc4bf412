#include "scheduler/topology/merge_hints.h"

#include <gtest/gtest.h>

namespace mortise::topology {
namespace {

constexpr NumaMask kNode0 = 0b0001;
constexpr NumaMask kNode1 = 0b0010;
constexpr NumaMask kBoth = 0b0011;

KubeletConfig with_policy(TopologyPolicy policy) {
  KubeletConfig config;
  config.policy = policy;
  return config;
}

Merged merged(const KubeletConfig& config, NumaMask all, const std::vector<HintList>& lists) {
  HintMerger merger;
  NumaNodes nodes;
  nodes.all = all;
  const Result<Merged> result = merger.merge(config, nodes, lists);
  EXPECT_TRUE(result.ok());
  return result.ok() ? *result : Merged{};
}

Merged merged(TopologyPolicy policy, NumaMask all, const std::vector<HintList>& lists) {
  return merged(with_policy(policy), all, lists);
}

TEST(MergeHints, NoOpinionAtAllIsAdmittedOnAllNodes) {
  const std::vector<HintList> lists = {no_preference(), no_preference()};
  EXPECT_EQ(merged(TopologyPolicy::kRestricted, kBoth, lists), (Merged{kBoth, true, true}));
  // single-numa-node turns "all nodes" into nil.
  EXPECT_EQ(merged(TopologyPolicy::kSingleNumaNode, kBoth, lists), (Merged{kAnyNuma, true, true}));
}

TEST(MergeHints, AnImpossibleResourceIsNotTheSameAsOneWithoutOpinion) {
  const std::vector<HintList> lists = {no_placement(), {{kNode0, true}}};
  // {nil,false} AND {0}: node 0, not preferred.
  EXPECT_EQ(merged(TopologyPolicy::kBestEffort, kBoth, lists), (Merged{kNode0, false, true}));
  EXPECT_EQ(merged(TopologyPolicy::kRestricted, kBoth, lists), (Merged{kNode0, false, false}));
  EXPECT_EQ(merged(TopologyPolicy::kSingleNumaNode, kBoth, lists), (Merged{kAnyNuma, false, false}));
}

TEST(MergeHints, PreferredMasksThatDifferArePreferredOnlyWithoutTheEqualityRule) {
  // One resource needs both nodes, the other one of them; the AND is {0} or {1}.
  const std::vector<HintList> lists = {{{kBoth, true}}, {{kNode0, true}, {kNode1, true}}};
  KubeletConfig config = with_policy(TopologyPolicy::kRestricted);
  EXPECT_EQ(merged(config, kBoth, lists), (Merged{kNode0, false, false}));
  config.rules.equal_masks = false;
  EXPECT_EQ(merged(config, kBoth, lists), (Merged{kNode0, true, true}));
}

TEST(MergeHints, APreferredWideMaskBeatsAnUnpreferredNarrowOne) {
  const std::vector<HintList> lists = {{{kNode0, false}, {kBoth, true}}, {{kNode0, true}, {kBoth, true}}};
  EXPECT_EQ(merged(TopologyPolicy::kBestEffort, kBoth, lists), (Merged{kBoth, true, true}));
}

TEST(MergeHints, UnpreferredCandidatesAimAtTheWidthOfTheNeediestResource) {
  // The first resource needs two nodes at least, so width 2 is wanted. Reachable intersections: {1}, {2}, {1,2}
  // (from {1,2,3} AND {1,2}), {1,2,3}; {1,2} is the one of width 2.
  const std::vector<HintList> lists = {{{0b0110, false}, {0b1110, false}},
                                       {{0b0010, true}, {0b0100, true}, {0b0110, false}}};
  EXPECT_EQ(merged(TopologyPolicy::kBestEffort, 0b1111, lists), (Merged{0b0110, false, true}));
}

TEST(MergeHints, BelowTheWantedWidthTheWidestWins) {
  // Wanted is 3 ({0,1,2}); the second resource offers {0} and {0,1}: intersections {0} and {0,1}.
  const std::vector<HintList> lists = {{{0b0111, true}}, {{0b0001, false}, {0b0011, false}}};
  EXPECT_EQ(merged(TopologyPolicy::kBestEffort, 0b1111, lists), (Merged{0b0011, false, true}));
}

TEST(MergeHints, AboveTheWantedWidthTheNarrowestWins) {
  // Wanted is 1, but {0} and {1} meet nothing; what remains is {2,3} and {2,3,4} with themselves and each other.
  const std::vector<HintList> lists = {{{0b00001, true}, {0b11100, false}, {0b01100, false}},
                                       {{0b00010, true}, {0b11100, false}, {0b01100, false}}};
  EXPECT_EQ(merged(TopologyPolicy::kBestEffort, 0b11111, lists), (Merged{0b01100, false, true}));
}

TEST(MergeHints, NothingInCommonFallsBackToAllNodes) {
  const std::vector<HintList> lists = {{{kNode0, true}}, {{kNode1, true}}};
  EXPECT_EQ(merged(TopologyPolicy::kBestEffort, kBoth, lists), (Merged{kBoth, false, true}));
  EXPECT_EQ(merged(TopologyPolicy::kRestricted, kBoth, lists), (Merged{kBoth, false, false}));
}

TEST(MergeHints, EqualWidthGoesToTheLowerNumberUnlessClosestIsAsked) {
  const std::vector<HintList> lists = {{{0b0011, true}, {0b1100, true}}};
  KubeletConfig config = with_policy(TopologyPolicy::kRestricted);
  NumaNodes nodes;
  nodes.all = 0b1111;
  // Nodes 0 and 1 are 30 apart, 2 and 3 are 12 apart.
  nodes.distances = {{10, 30, 20, 20}, {30, 10, 20, 20}, {20, 20, 10, 12}, {20, 20, 12, 10}};
  HintMerger merger;
  EXPECT_EQ(merger.merge(config, nodes, lists)->affinity, NumaMask{0b0011});
  config.prefer_closest = true;
  EXPECT_EQ(merger.merge(config, nodes, lists)->affinity, NumaMask{0b1100});
}

TEST(MergeHints, ClosestDoesNotPreferAWiderMask) {
  const std::vector<HintList> lists = {{{0b0011, true}, {0b1110, true}}};
  KubeletConfig config = with_policy(TopologyPolicy::kRestricted);
  config.prefer_closest = true;
  NumaNodes nodes;
  nodes.all = 0b1111;
  nodes.distances = {{10, 90, 10, 10}, {90, 10, 10, 10}, {10, 10, 10, 10}, {10, 10, 10, 10}};
  HintMerger merger;
  EXPECT_EQ(merger.merge(config, nodes, lists)->affinity, NumaMask{0b0011});
}

TEST(MergeHints, SingleNumaNodeIgnoresWideAndUnpreferredHints) {
  const std::vector<HintList> lists = {{{kNode0, false}, {kNode1, true}, {kBoth, true}},
                                       {{kNode0, true}, {kNode1, true}}};
  EXPECT_EQ(merged(TopologyPolicy::kSingleNumaNode, kBoth, lists), (Merged{kNode1, true, true}));
}

TEST(MergeHints, OnAMachineWithOneNodeSingleNumaNodeAnswersNil) {
  const std::vector<HintList> lists = {{{kNode0, true}}};
  EXPECT_EQ(merged(TopologyPolicy::kSingleNumaNode, kNode0, lists), (Merged{kAnyNuma, true, true}));
  EXPECT_EQ(merged(TopologyPolicy::kRestricted, kNode0, lists), (Merged{kNode0, true, true}));
}

TEST(MergeHints, TooManyNodesAreRefusedWithTheNumber) {
  HintList list;
  for (int id = 0; id < 20; ++id) list.push_back({numa_bit(id), false});
  HintMerger merger;
  NumaNodes nodes;
  nodes.all = (NumaMask{1} << 20) - 1;
  const Result<Merged> result =
      merger.merge(with_policy(TopologyPolicy::kBestEffort), nodes, std::vector<HintList>(1, list));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.message().substr(0, 30), "the hints name 20 NUMA nodes; ");
}

TEST(MergeHints, SparseHighNodeIdsWork) {
  const NumaMask node63 = numa_bit(63);
  const std::vector<HintList> lists = {{{node63, true}, {node63 | kNode0, false}}, {{kNode0, true}, {node63, true}}};
  EXPECT_EQ(merged(TopologyPolicy::kRestricted, node63 | kNode0, lists), (Merged{node63, true, true}));
}

}  // namespace
}  // namespace mortise::topology
