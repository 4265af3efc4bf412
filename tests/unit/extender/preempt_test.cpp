#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/extender/handlers.h"
#include "scheduler/topology/sources/synthetic.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using topology::TopologyPolicy;

constexpr Nanoseconds kHour = 3600 * kSecond;

PreemptionCandidate node(std::string_view name, const std::vector<std::string_view>& uids,
                         std::int64_t pdb_violations = 0) {
  PreemptionCandidate candidate{name, {}, pdb_violations};
  for (const std::string_view uid : uids) candidate.victims.push_back({uid, std::nullopt});
  return candidate;
}

PreemptionQuestion ask_room(std::int32_t gpus, std::int32_t priority, std::vector<PreemptionCandidate> candidates) {
  PreemptionQuestion question;
  question.pod = ask("asks", gpus, {});
  question.pod.priority = priority;
  question.args.candidates = std::move(candidates);
  return question;
}

std::vector<std::string> nodes_of(const std::vector<NodeVictims>& answer) {
  std::vector<std::string> names;
  for (const NodeVictims& each : answer) names.emplace_back(each.node);
  return names;
}

/// The victims on the only node of the answer.
std::vector<std::string> victims_of(const std::vector<NodeVictims>& answer) {
  return answer.size() == 1 ? answer.front().uids : std::vector<std::string>{std::to_string(answer.size()) + " nodes"};
}

/// Two pods of 4 GPUs on big-a, priorities 10 and 20; nothing free for more than 2 GPUs.
class Preempt : public testing::Test {
 protected:
  Preempt() {
    cluster.hold("low-10", "big-a", 4, 10);
    cluster.hold("low-20", "big-a", 4, 20);
    cluster.occupy("big-b", 8);
  }
  std::vector<NodeVictims> preempt(const PreemptionQuestion& question) {
    auto answer = cluster.handlers().preempt(question);
    EXPECT_TRUE(cluster.cluster().check().ok());
    return answer;
  }

  TestCluster cluster;
};

TEST_F(Preempt, TrimsTheProposalToWhatIsNeeded) {
  EXPECT_THAT(victims_of(preempt(ask_room(4, 100, {node("big-a", {"low-20", "low-10"})}))), ElementsAre("low-10"));
}

TEST_F(Preempt, ExtendsTheProposalToWhatIsNeeded) {
  EXPECT_THAT(victims_of(preempt(ask_room(8, 100, {node("big-a", {"low-10"})}))), ElementsAre("low-20", "low-10"));
}

TEST_F(Preempt, TakesTheCheapestVictimsWhateverWasProposed) {
  EXPECT_THAT(victims_of(preempt(ask_room(4, 100, {node("big-a", {"low-20"})}))), ElementsAre("low-10"));
}

TEST_F(Preempt, NamesVictimsWhereNoneWereProposed) {
  EXPECT_THAT(victims_of(preempt(ask_room(4, 100, {node("big-a", {})}))), ElementsAre("low-10"));
}

TEST_F(Preempt, TheAnswerChangesNothing) {
  const StateId before = cluster.cluster().node_state(*cluster.cluster().find_node("big-a"));
  const auto question = ask_room(8, 100, {node("big-a", {"low-10"})});
  const auto first = preempt(question);
  const auto second = preempt(question);
  EXPECT_EQ(first.front().uids, second.front().uids);
  EXPECT_EQ(cluster.cluster().node_state(*cluster.cluster().find_node("big-a")), before);
  EXPECT_EQ(cluster.free_gpus("big-a"), 0);
}

TEST_F(Preempt, NodesWhereTheVictimsDoNotHelpAreDropped) {
  cluster.hold("on-small", "small", 2, 0);
  const auto answer = preempt(ask_room(
      4, 100,
      {node("small", {"on-small"}), node("plain", {"web"}), node("big-a", {"low-10"}), node("never-seen", {"x"})}));
  EXPECT_THAT(nodes_of(answer), ElementsAre("big-a"));
}

TEST_F(Preempt, NeverAPodOfEqualOrHigherPriority) {
  EXPECT_THAT(victims_of(preempt(ask_room(4, 20, {node("big-a", {"low-20"})}))), ElementsAre("low-10"));
  EXPECT_THAT(preempt(ask_room(8, 20, {node("big-a", {"low-20", "low-10"})})), IsEmpty());
  EXPECT_THAT(preempt(ask_room(4, 10, {node("big-a", {"low-10"})})), IsEmpty());
}

TEST_F(Preempt, NeverForAPodThatMustNotPreempt) {
  auto question = ask_room(4, 100, {node("big-a", {"low-10"})});
  question.pod.preempts = false;
  EXPECT_THAT(preempt(question), IsEmpty());
}

TEST_F(Preempt, NeverForAPodThatNoNodeCanTakeOrThatHasItsNode) {
  auto invalid = ask_room(4, 100, {node("big-a", {"low-10"})});
  invalid.pod.invalid = "InvalidRequest: ...";
  EXPECT_THAT(preempt(invalid), IsEmpty());
  placement::PodRequest bound;
  bound.uid = "asks";
  cluster.bookings().bound(bound, "big-b", {}, {});
  EXPECT_THAT(preempt(ask_room(4, 100, {node("big-a", {"low-10"})})), IsEmpty());
}

TEST_F(Preempt, ForAPodWithoutGpusTheCandidatesComeBackUnchanged) {
  const auto answer = preempt(
      ask_room(0, 5, {node("big-a", {"low-20", "low-10"}, 2), node("never-seen", {"x"}, 1), node("plain", {}, 0)}));
  ASSERT_THAT(nodes_of(answer), ElementsAre("big-a", "never-seen", "plain"));
  EXPECT_THAT(answer[0].uids, ElementsAre("low-20", "low-10"));
  EXPECT_EQ(answer[0].pdb_violations, 2);
  EXPECT_THAT(answer[1].uids, ElementsAre("x"));
  EXPECT_EQ(answer[1].pdb_violations, 1);
  EXPECT_THAT(answer[2].uids, IsEmpty());
}

TEST_F(Preempt, TheMostImportantVictimComesFirst) {
  cluster.hold("on-small-1", "small", 1, 3);
  cluster.hold("on-small-2", "small", 1, 7);
  EXPECT_THAT(victims_of(preempt(ask_room(2, 100, {node("small", {"on-small-1", "on-small-2"})}))),
              ElementsAre("on-small-2", "on-small-1"));
}

TEST_F(Preempt, OfEqualPodsTheOneThatStartedLaterGoes) {
  cluster.hold("old", "small", 1, 5, 3 * kHour);
  cluster.hold("new", "small", 1, 5, kHour);
  EXPECT_THAT(victims_of(preempt(ask_room(1, 100, {node("small", {"old"})}))), ElementsAre("new"));
}

TEST_F(Preempt, APodBoundHereIsAVictimWithThePriorityItSaid) {
  PodQuestion question = ask("tenant", 2, {"small"});
  question.priority = 30;
  cluster.handlers().filter(question);
  ASSERT_EQ(cluster.handlers().bind({"pod-tenant", "default", "tenant", "small"}), "");
  EXPECT_THAT(preempt(ask_room(2, 30, {node("small", {})})), IsEmpty());
  EXPECT_THAT(victims_of(preempt(ask_room(2, 31, {node("small", {})}))), ElementsAre("tenant"));
}

// Filter passed big-b and put big-a aside as "Decisive: another node chosen"; another extender refused big-b.
TEST_F(Preempt, NoCandidateForAPodThatHasAFittingNode) {
  cluster.add("big-c", 8, "A100");
  cluster.handlers().filter(ask("asks", 4, {"big-a", "big-c"}));
  const auto question = ask_room(4, 100, {node("big-a", {"low-10"})});
  EXPECT_THAT(preempt(question), IsEmpty());
  auto advisory = question;
  advisory.pod.decisive = false;
  EXPECT_THAT(nodes_of(preempt(advisory)), ElementsAre("big-a"));
}

TEST_F(Preempt, AFittingNodeThatFilledUpSinceIsNone) {
  cluster.add("big-c", 8, "A100");
  cluster.handlers().filter(ask("asks", 4, {"big-a", "big-c"}));
  cluster.occupy("big-c", 8);
  EXPECT_THAT(nodes_of(preempt(ask_room(4, 100, {node("big-a", {"low-10"})}))), ElementsAre("big-a"));
}

// It is not what filter is asked about in this attempt: the node may be tainted by now.
TEST_F(Preempt, AFittingNodeOfAnEarlierAttemptIsNone) {
  cluster.add("big-c", 8, "A100");
  cluster.handlers().filter(ask("asks", 4, {"big-a", "big-c"}));
  cluster.clock().advance(31 * kSecond);
  EXPECT_THAT(nodes_of(preempt(ask_room(4, 100, {node("big-a", {"low-10"})}))), ElementsAre("big-a"));
}

// The pod may not go there: by a nodeSelector, say. Nobody asked about it.
TEST_F(Preempt, ANodeThatFilterWasNotAskedAboutIsNone) {
  cluster.add("big-c", 8, "A100");
  cluster.handlers().filter(ask("asks", 4, {"big-a"}));
  EXPECT_THAT(nodes_of(preempt(ask_room(4, 100, {node("big-a", {"low-10"})}))), ElementsAre("big-a"));
}

TEST_F(Preempt, ANodeThatNeedsNoVictimIsAFittingNode) {
  const std::vector<PreemptionCandidate> candidates = {node("big-a", {"low-10"}), node("small", {})};
  EXPECT_THAT(preempt(ask_room(2, 100, candidates)), IsEmpty());
  auto advisory = ask_room(2, 100, candidates);
  advisory.pod.decisive = false;
  EXPECT_THAT(nodes_of(preempt(advisory)), ElementsAre("big-a"));  // never a node without victims
}

TEST_F(Preempt, WhatIsProposedForReasonsOfKubeSchedulerStays) {
  cluster.hold("on-small", "small", 1, 5);
  EXPECT_THAT(victims_of(preempt(ask_room(1, 100, {node("small", {"on-small"})}))), ElementsAre("on-small"));
  EXPECT_THAT(victims_of(preempt(ask_room(1, 100, {node("small", {"port-holder"})}))), ElementsAre("port-holder"));
  EXPECT_THAT(preempt(ask_room(1, 5, {node("small", {"on-small"})})), IsEmpty());
}

TEST_F(Preempt, ProposedPodsThatAreNotOnTheBooksStayAndFreeNothing) {
  EXPECT_THAT(victims_of(preempt(ask_room(4, 100, {node("big-a", {"stranger", "stranger", ""})}))),
              ElementsAre("low-10", "stranger"));
  EXPECT_THAT(preempt(ask_room(4, 100, {node("big-b", {"stranger"})})), IsEmpty());
  auto told = ask_room(4, 100, {node("big-a", {"stranger"})});
  told.args.candidates[0].victims[0].priority = 50;
  EXPECT_THAT(victims_of(preempt(told)), ElementsAre("stranger", "low-10"));
  told.args.candidates[0].victims[0].priority = 100;
  EXPECT_THAT(victims_of(preempt(told)), ElementsAre("low-10"));
}

TEST_F(Preempt, APodOnAnotherNodeIsNoVictimHere) {
  cluster.hold("on-small", "small", 2, 0);
  const auto answer = preempt(ask_room(4, 100, {node("big-a", {"low-10"}), node("small", {"on-small"})}));
  EXPECT_THAT(victims_of(answer), ElementsAre("low-10"));
}

std::int64_t violations(const std::vector<NodeVictims>& answer) {
  return answer.size() == 1 ? answer.front().pdb_violations : -1;
}

TEST_F(Preempt, DisruptionBudgetViolationsAreCountedAgain) {
  // Trimmed from two that both violate to one.
  EXPECT_EQ(violations(preempt(ask_room(4, 100, {node("big-a", {"low-20", "low-10"}, 2)}))), 1);
  // Of two one violates: the other may be the one that stays a victim.
  EXPECT_EQ(violations(preempt(ask_room(4, 100, {node("big-a", {"low-20", "low-10"}, 1)}))), 0);
  // Extended by one.
  EXPECT_EQ(violations(preempt(ask_room(8, 100, {node("big-a", {"low-10"}, 1)}))), 2);
  EXPECT_EQ(violations(preempt(ask_room(8, 100, {node("big-a", {"low-10"}, 0)}))), 0);
  EXPECT_EQ(violations(preempt(ask_room(8, 100, {node("big-a", {"low-20", "low-10"}, 1)}))), 1);
  // Numbers that cannot be.
  EXPECT_EQ(violations(preempt(ask_room(4, 100, {node("big-a", {"low-10"}, 7)}))), 1);
  EXPECT_EQ(violations(preempt(ask_room(4, 100, {node("big-a", {"low-10"}, -1)}))), 0);
  EXPECT_EQ(violations(preempt(ask_room(4, 100, {node("big-a", {}, 0)}))), 0);
}

/// numa: two NUMA nodes of 4 GPUs, kubelet restricts a pod to one. GPUs 0 to 3 are on NUMA node 0.
class PreemptOnNuma : public Preempt {
 protected:
  PreemptOnNuma() {
    placement::TopologySpec spec;
    spec.kubelet.policy = TopologyPolicy::kSingleNumaNode;
    placement::NodeSpec numa{"numa", 64'000, 256 * 1024 * kMiB, 110, 8, "A100"};
    numa.topology = *table.intern(topology::read_synthetic("numa:2 cpu:32 memory:128Gi gpu:4", "test")->machine, spec);
    cluster.add(numa);
  }
  placement::NodeTopologyTable table;
};

// Five single GPUs are taken, the fifth on NUMA node 1. By count any one of the pods would do, and `a` is the cheapest.
TEST_F(PreemptOnNuma, VictimsMakeRoomWhereKubeletAdmitsThePod) {
  cluster.hold("a", "numa", 1, 20);
  cluster.hold("b", "numa", 1, 21);
  cluster.hold("c", "numa", 1, 22);
  cluster.hold("d", "numa", 1, 35);
  cluster.hold("e", "numa", 1, 30);
  EXPECT_THAT(victims_of(preempt(ask_room(4, 100, {node("numa", {"a"})}))), ElementsAre("e"));
}

TEST_F(PreemptOnNuma, ANodeWhereKubeletWouldStillRefuseIsDropped) {
  cluster.hold("a", "numa", 4, 10);
  cluster.hold("b", "numa", 4, 10);
  EXPECT_THAT(preempt(ask_room(5, 100, {node("numa", {"a", "b"})})), IsEmpty());
  EXPECT_THAT(victims_of(preempt(ask_room(4, 100, {node("numa", {"a", "b"})}))), ElementsAre("b"));
}

// GPUs 6 and 7 are free. By count `low` and one of NUMA node 1 would do.
TEST_F(PreemptOnNuma, TheProposalIsExtendedForAlignment) {
  cluster.hold("high", "numa", 3, 50);
  cluster.hold("low", "numa", 1, 5);
  cluster.hold("y1", "numa", 1, 10);
  cluster.hold("y2", "numa", 1, 11);
  EXPECT_THAT(victims_of(preempt(ask_room(4, 100, {node("numa", {"y1", "low"})}))), ElementsAre("y2", "y1"));
}

}  // namespace
}  // namespace mortise::extender
