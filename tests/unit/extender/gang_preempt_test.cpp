// Who goes for a gang, and gangs of which somebody has to go, as kube-scheduler asks and is answered. Reports that are
// named: the numbers are theirs unless a comment says otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scheduler/extender/evictions.h"
#include "scheduler/extender/gang_feed.h"
#include "scheduler/extender/gangs.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// Nodes of test_cluster.h and others; who is on them is told as the API server would.
class GangPreempt : public testing::Test {
 protected:
  GangPreempt() {
    for (const char* name : {"big-a", "big-b", "small", "plain"}) place(name, "r1");
    test_.handlers().place_gangs(gangs_, feed_);
    test_.handlers().evict_through(evictions_);
    gangs_.evict_through(evictions_);
  }

  void place(const std::string& name, const std::string& rack) {
    domains_.set_node(*test_.cluster().find_node(name), std::vector<placement::Label>{{"rack", rack}});
  }
  void node(const std::string& name, int gpus, const std::string& rack = "r1") {
    test_.add(name, gpus, "A100");
    place(name, rack);
  }
  static kube::Pod pod(const std::string& name, int gpus, std::int32_t priority) {
    kube::Pod made;
    made.ns = "default";
    made.name = made.uid = name;
    made.phase = "Pending";
    made.priority = priority;
    kube::Container container;
    container.name = "main";
    if (gpus > 0) container.limits = {{"nvidia.com/gpu", std::to_string(gpus)}};
    made.containers.push_back(container);
    return made;
  }
  static kube::Pod member(const std::string& gang, int number, int gpus, int minimum, std::int32_t priority) {
    kube::Pod made = pod(gang + "-" + std::to_string(number), gpus, priority);
    made.annotations = {{"mortise.dev/gang-name", gang}, {"mortise.dev/gang-min-member", std::to_string(minimum)}};
    return made;
  }
  /// All members of a gang that waits; so many are its minimum.
  std::vector<kube::Pod> gang(const std::string& name, int members, int gpus, std::int32_t priority) {
    std::vector<kube::Pod> made;
    for (int i = 0; i < members; ++i) {
      made.push_back(member(name, i, gpus, members, priority));
      feed_.update(made.back());
    }
    return made;
  }
  void run(const kube::Pod& waiting, const std::string& node) {
    kube::Pod bound = waiting;
    bound.node_name = node;
    feed_.update(bound);
    test_.bookings().bound(*kube::pod_request(bound), node, {});
    ASSERT_TRUE(test_.bookings().find(bound.uid)->allocation.has_value());
  }
  /// A gang that runs; one member on each of the nodes named.
  void running_gang(const std::string& name, int minimum, int gpus, std::int32_t priority,
                    const std::vector<std::string>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      run(member(name, static_cast<int>(i), gpus, minimum, priority), nodes[i]);
    }
  }
  /// As when kube-scheduler has marked the pod and deleted it, and when it is gone.
  void begins_to_leave(const std::string& uid) {
    test_.bookings().leaves(uid);
    evictions_.begun(uid);
  }
  void gone(const std::string& uid) {
    feed_.gone(uid);
    test_.bookings().ended(uid);
    gangs_.freed();
  }

  /// What kube-scheduler proposes matters only in who says so.
  std::vector<NodeVictims> preempt(const kube::Pod& pod, const std::vector<std::string>& nodes) {
    names_ = nodes;
    PreemptionQuestion question;
    question.pod.pod = *kube::pod_request(pod);
    question.pod.object = pod;
    question.pod.preempts = pod.preemption_policy != "Never";
    for (const std::string& name : names_) question.args.candidates.push_back({name, {}, 0});
    std::vector<NodeVictims> answer = test_.handlers().preempt(question);
    EXPECT_TRUE(test_.cluster().check().ok());
    return answer;
  }
  std::vector<std::string> victims(const kube::Pod& pod, const std::vector<std::string>& nodes) {
    const auto answer = preempt(pod, nodes);
    return answer.empty() ? std::vector<std::string>() : answer.front().uids;
  }
  FilterResult filter(const kube::Pod& pod, const std::vector<std::string>& nodes) {
    names_ = nodes;
    PodQuestion question = ask(pod.uid, 0, {names_.begin(), names_.end()});
    question.pod = *kube::pod_request(pod);
    question.object = pod;
    return test_.handlers().filter(question).result;
  }
  std::string passed(const kube::Pod& pod, const std::vector<std::string>& nodes) {
    const auto names = with_verdict(filter(pod, nodes), Verdict::kPassed);
    return names.empty() ? std::string() : names.front();
  }
  std::vector<std::string> due() {
    std::vector<std::string> uids;
    while (const auto order = evictions_.next()) uids.push_back(order->uid);
    return uids;
  }

  TestCluster test_;
  placement::ClusterState& state_ = const_cast<placement::ClusterState&>(test_.cluster());
  placement::Domains domains_{state_, {{"rack", "rack"}}};
  std::unique_ptr<placement::Policy> policy_ = *placement::make_policy("best-fit", placement::TypicalPods());
  Gangs gangs_{test_.bookings(), state_, domains_, *policy_, 1, test_.clock()};
  GangFeed feed_{gangs_};
  Evictions evictions_{test_.bookings(), test_.clock()};
  std::vector<std::string> names_;  // of the question that is being answered
};

// volcano#5984: a gang of eleven with a minimum of one fills the node; one pod of one is to be let in. GPUs for CPUs.
TEST_F(GangPreempt, OfASurplusOfTenOnlyTheOneGoesThatIsNeeded) {
  node("eleven", 11);
  for (int i = 0; i < 11; ++i) {
    kube::Pod one = pod("low-" + std::to_string(i), 1, 10);
    one.annotations = {{"gang.scheduling.koordinator.sh/name", "low"},
                       {"gang.scheduling.koordinator.sh/min-available", "1"},
                       {"gang.scheduling.koordinator.sh/total-number", "11"}};
    run(one, "eleven");
  }
  ASSERT_TRUE(gangs_.is_member("low-0"));
  EXPECT_THAT(victims(pod("single", 1, 100), {"eleven"}), SizeIs(1));
  EXPECT_THAT(victims(gang("high", 2, 1, 100)[0], {"eleven"}), SizeIs(2));
  EXPECT_THAT(victims(pod("large", 11, 101), {"eleven"}), SizeIs(11));  // then all of it
}

// Three of four are the minimum. One may go alone, and with two all do.
TEST_F(GangPreempt, AGangIsNotCutBelowItsMinimum) {
  running_gang("low", 3, 2, 10, {"big-a", "big-a", "big-a", "big-a"});
  EXPECT_THAT(victims(pod("small", 2, 100), {"big-a"}), SizeIs(1));
  EXPECT_THAT(victims(pod("larger", 4, 100), {"big-a"}), SizeIs(4));
}

// volcano#5026: nobody goes when the gang does not fit as a whole afterwards. Sizes mine.
TEST_F(GangPreempt, NobodyGoesWhenTheGangWouldNotFitAsAWhole) {
  run(pod("low", 8, 10), "big-a");
  run(pod("same", 8, 100), "big-b");
  const auto high = gang("high", 2, 8, 100);
  for (const kube::Pod& one : high) EXPECT_THAT(preempt(one, {"big-a", "big-b"}), IsEmpty());
  EXPECT_FALSE(gangs_.keeps_nodes());
}

// volcano#2772: a node of 8 GPUs with one pod of 8; a gang of two pods of 2.
TEST_F(GangPreempt, ALargePodGoesForAGangOfSmallOnes) {
  run(pod("low", 8, 10), "big-a");
  const auto high = gang("high", 2, 2, 100);
  EXPECT_THAT(victims(high[0], {"big-a"}), ElementsAre("low"));
  begins_to_leave("low");
  EXPECT_THAT(preempt(high[1], {"big-a"}), IsEmpty());  // it goes already
  gone("low");
  EXPECT_EQ(passed(high[1], {"big-a"}), "big-a");
  EXPECT_EQ(passed(high[0], {"big-a"}), "big-a");
}

// volcano#5131 and #3291: of two nodes one is free, on the other is a pod of low priority. A gang of two counts the
// free one and needs one victim. Sizes mine.
TEST_F(GangPreempt, AMemberThatFitsFreeSpaceNeedsNoVictimAndIsCounted) {
  run(pod("low", 8, 10), "big-b");
  const auto high = gang("high", 2, 8, 100);
  EXPECT_EQ(passed(high[0], {"big-a"}), "");
  std::vector<std::string> all;
  for (const kube::Pod& one : high) {
    for (const std::string& uid : victims(one, {"big-b"})) all.push_back(uid);
  }
  EXPECT_THAT(all, ElementsAre("low"));
  gone("low");
  EXPECT_EQ(passed(high[0], {"big-a", "big-b"}).substr(0, 3), "big");
  EXPECT_EQ(test_.bookings().reserved(), 2U);
}

TEST_F(GangPreempt, EachMemberIsAnsweredItsOwnNodeWithTheVictimsThere) {
  for (const char* name : {"c", "d"}) node(name, 8);
  const std::vector<std::string> nodes = {"big-a", "big-b", "c", "d"};
  for (const std::string& name : nodes) {
    run(pod("low1-" + name, 4, 10), name);
    run(pod("low2-" + name, 4, 10), name);
  }
  const auto high = gang("high", 3, 8, 100);
  std::vector<std::string> used;
  std::vector<std::string> evicted;
  for (const kube::Pod& one : high) {
    const auto answer = preempt(one, nodes);
    ASSERT_THAT(answer, SizeIs(1));
    used.emplace_back(answer[0].node);
    EXPECT_THAT(answer[0].uids, UnorderedElementsAre("low1-" + used.back(), "low2-" + used.back()));
    for (const std::string& uid : answer[0].uids) evicted.push_back(uid);
  }
  EXPECT_EQ(std::set<std::string>(used.begin(), used.end()).size(), 3U);
  EXPECT_THAT(evicted, SizeIs(6));
  // Nobody else gets what becomes free before all are gone, and each member hears the node it was told.
  for (std::size_t i = 0; i + 1 < evicted.size(); ++i) gone(evicted[i]);
  EXPECT_EQ(reason_of(filter(pod("other", 8, 100), {used[0]}), used[0]),
            "Kept: for a gang of the same or higher priority");
  EXPECT_EQ(passed(pod("higher", 1, 101), {used[0]}), used[0]);
  EXPECT_EQ(passed(high[0], {used[0]}), "");
  gone(evicted.back());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(passed(high[i], {used[i]}), used[i]);
}

TEST_F(GangPreempt, NeverAPodOfEqualOrHigherPriority) {
  run(pod("same", 8, 100), "big-a");
  run(pod("low", 8, 99), "big-b");
  EXPECT_THAT(preempt(gang("two", 2, 8, 100)[0], {"big-a", "big-b"}), IsEmpty());
  EXPECT_THAT(victims(gang("one", 2, 4, 100)[0], {"big-a", "big-b"}), ElementsAre("low"));
}

// As a victim the gang has the highest priority of its members.
TEST_F(GangPreempt, AGangIsProtectedByItsMemberOfTheHighestPriority) {
  run(member("mixed", 0, 4, 2, 10), "big-a");
  run(member("mixed", 1, 4, 2, 100), "big-a");
  EXPECT_THAT(preempt(pod("single", 4, 100), {"big-a"}), IsEmpty());
  EXPECT_THAT(victims(pod("higher", 4, 101), {"big-a"}), UnorderedElementsAre("mixed-0", "mixed-1"));
}

TEST_F(GangPreempt, NeverForAGangWithAMemberThatMustNotPreempt) {
  run(pod("low", 8, 10), "big-a");
  kube::Pod first = member("high", 0, 2, 2, 100);
  kube::Pod second = member("high", 1, 2, 2, 100);
  second.preemption_policy = "Never";
  feed_.update(first);
  feed_.update(second);
  EXPECT_THAT(preempt(first, {"big-a"}), IsEmpty());
  EXPECT_THAT(preempt(second, {"big-a"}), IsEmpty());
}

TEST_F(GangPreempt, AGangThatNeverFitsEvictsNobody) {
  run(pod("low-a", 8, 10), "big-a");
  run(pod("low-b", 8, 10), "big-b");
  const auto high = gang("high", 3, 8, 100);  // two nodes have 8 GPUs
  EXPECT_THAT(preempt(high[0], {"big-a", "big-b"}), IsEmpty());
}

TEST_F(GangPreempt, AGangThatIsNotCompleteEvictsNobody) {
  run(pod("low", 8, 10), "big-a");
  feed_.update(member("high", 0, 4, 2, 100));
  EXPECT_THAT(preempt(member("high", 0, 4, 2, 100), {"big-a"}), IsEmpty());
}

// The gang that goes is on both nodes of the plan and on a third. What kube-scheduler does not come to is evicted, too.
TEST_F(GangPreempt, ForAGangTheRestOfAnotherGangGoesOnceKubeSchedulerHasBegun) {
  node("c", 8);
  running_gang("low", 3, 8, 10, {"big-a", "big-b", "c"});
  const auto high = gang("high", 2, 8, 100);
  std::vector<std::string> answered;
  for (const kube::Pod& one : high) {
    for (const std::string& uid : victims(one, {"big-a", "big-b", "c"})) answered.push_back(uid);
  }
  ASSERT_THAT(answered, SizeIs(2));
  EXPECT_THAT(due(), IsEmpty());
  begins_to_leave(answered[0]);
  gone(answered[0]);
  EXPECT_THAT(due(), SizeIs(1));
  test_.clock().advance(Evictions::kLeave);
  EXPECT_THAT(due(), ElementsAre(answered[1]));
}

// Two of four can be spared: they go one by one, as kube-scheduler comes to them.
TEST_F(GangPreempt, WhatAGangCanSpareIsLeftToKubeScheduler) {
  running_gang("low", 2, 4, 10, {"big-a", "big-a", "big-b", "big-b"});
  const auto high = gang("high", 2, 4, 100);
  const auto evicted = victims(high[0], {"big-a", "big-b"});
  ASSERT_FALSE(evicted.empty());
  begins_to_leave(evicted[0]);
  gone(evicted[0]);
  test_.clock().advance(Evictions::kLeave);
  EXPECT_THAT(due(), IsEmpty());
}

// Rack r1 has a free node, r2 has two nodes of pods of low priority.
TEST_F(GangPreempt, RoomIsMadeInOneDomainOfTheRequiredLevel) {
  node("c", 8, "r2");
  node("d", 8, "r2");
  run(pod("high-b", 8, 200), "big-b");
  run(pod("low-c", 8, 10), "c");
  run(pod("low-d", 8, 10), "d");
  std::vector<kube::Pod> both = {member("high", 0, 8, 2, 100), member("high", 1, 8, 2, 100)};
  for (kube::Pod& one : both) {
    one.annotations["mortise.dev/topology-required"] = "rack";
    feed_.update(one);
  }
  std::vector<std::string> all;
  for (const kube::Pod& one : both) {
    for (const std::string& uid : victims(one, {"c", "d"})) all.push_back(uid);
  }
  EXPECT_THAT(all, UnorderedElementsAre("low-c", "low-d"));
}

// A gang of two is on big-a and on big-b; the single pod needs room on one of them.
TEST_F(GangPreempt, AGangAtItsMinimumGoesAsAWholeAndTheRestOnlyOnceKubeSchedulerHasBegun) {
  running_gang("low", 2, 8, 10, {"big-a", "big-b"});
  const auto answer = preempt(pod("single", 8, 100), {"big-a"});
  ASSERT_THAT(answer, SizeIs(1));
  EXPECT_THAT(answer[0].uids, ElementsAre("low-0"));
  EXPECT_THAT(due(), IsEmpty());
  begins_to_leave("low-0");
  EXPECT_THAT(due(), ElementsAre("low-1"));
}

// What kube-scheduler does not evict of the node after all is evicted, too, or a part would stay.
TEST_F(GangPreempt, WhatKubeSchedulerLeavesOfAGangIsEvictedAfterAWhile) {
  running_gang("low", 3, 4, 10, {"big-a", "big-a", "big-b"});
  EXPECT_THAT(victims(pod("single", 8, 100), {"big-a"}), UnorderedElementsAre("low-0", "low-1"));
  begins_to_leave("low-0");
  EXPECT_THAT(due(), ElementsAre("low-2"));
  test_.clock().advance(Evictions::kLeave);
  EXPECT_THAT(due(), ElementsAre("low-1"));
}

TEST_F(GangPreempt, NothingIsEvictedWhenKubeSchedulerDoesNotBeginInTime) {
  running_gang("low", 2, 8, 10, {"big-a", "big-b"});
  (void)preempt(pod("single", 8, 100), {"big-a"});
  test_.clock().advance(Evictions::kWait);
  gone("low-0");
  EXPECT_THAT(due(), IsEmpty());
}

TEST_F(GangPreempt, WithoutAnApiServerAGangOnSeveralNodesIsNoVictim) {
  Handlers alone(test_.engine(), test_.bookings(), test_.clock());
  alone.place_gangs(gangs_, feed_);
  running_gang("low", 2, 8, 10, {"big-a", "big-b"});
  PreemptionQuestion question;
  question.pod.object = pod("single", 8, 100);
  question.pod.pod = *kube::pod_request(question.pod.object);
  question.args.candidates.push_back({"big-a", {}, 0});
  EXPECT_THAT(alone.preempt(question), IsEmpty());
}

// On big-a is the half of a gang, on big-b are eight pods for themselves, all of one priority. By the sum of priorities
// the two of the gang would go.
TEST_F(GangPreempt, WhereNobodyElsewhereHasToGoIsPreferred) {
  node("c", 8);
  running_gang("low", 2, 8, 10, {"big-a", "c"});
  std::vector<std::string> singles;
  for (int i = 0; i < 8; ++i) {
    singles.push_back("s" + std::to_string(i));
    run(pod(singles.back(), 1, 10), "big-b");
  }
  EXPECT_THAT(victims(gang("high", 2, 4, 100)[0], {"big-a", "big-b"}), testing::UnorderedElementsAreArray(singles));
}

TEST_F(GangPreempt, NoMoreGoWhileThoseThatGoWouldMakeRoom) {
  run(pod("leaves", 8, 10), "big-a");
  run(pod("low", 8, 5), "big-b");
  begins_to_leave("leaves");
  const auto high = gang("high", 2, 4, 100);
  EXPECT_THAT(preempt(high[0], {"big-a", "big-b"}), IsEmpty());
  EXPECT_TRUE(gangs_.kept_from(*test_.cluster().find_node("big-a"), "other", 100));
  gone("leaves");
  EXPECT_EQ(passed(high[0], {"big-a"}), "big-a");
}

TEST_F(GangPreempt, AHigherGangTakesOverFromALowerOne) {
  run(pod("low", 8, 1), "big-a");
  run(pod("top", 8, 1000), "big-b");
  const auto middle = gang("middle", 2, 4, 50);
  const auto high = gang("high", 2, 4, 100);
  EXPECT_THAT(victims(middle[0], {"big-a"}), ElementsAre("low"));
  begins_to_leave("low");
  EXPECT_THAT(preempt(high[0], {"big-a"}), IsEmpty());  // who goes for the lower one is enough
  gone("low");
  EXPECT_EQ(passed(middle[0], {"big-a"}), "");
  EXPECT_EQ(passed(high[0], {"big-a"}), "big-a");
}

TEST_F(GangPreempt, AnEqualGangDoesNotTakeOver) {
  run(pod("low", 8, 1), "big-a");
  run(pod("top", 8, 1000), "big-b");
  const auto first = gang("first", 2, 4, 100);
  const auto second = gang("second", 2, 4, 100);
  EXPECT_THAT(victims(first[0], {"big-a"}), ElementsAre("low"));
  EXPECT_THAT(preempt(second[0], {"big-a"}), IsEmpty());
  EXPECT_THAT(victims(first[0], {"big-a"}), ElementsAre("low"));
}

// The node is free for the gang, so a single pod of no higher priority has nothing of evicting there.
TEST_F(GangPreempt, ASinglePodDoesNotEvictWhereRoomIsMadeForAGang) {
  run(pod("low1", 4, 1), "big-a");
  run(pod("low2", 4, 1), "big-a");
  const auto high = gang("high", 2, 4, 100);
  EXPECT_THAT(victims(high[0], {"big-a"}), SizeIs(2));
  EXPECT_THAT(preempt(pod("single", 4, 100), {"big-a"}), IsEmpty());
  EXPECT_THAT(victims(pod("higher", 4, 101), {"big-a"}), SizeIs(1));
}

TEST_F(GangPreempt, NodesAreHeldForAMinuteOrUntilTheVictimsAreGone) {
  run(pod("low", 8, 1), "big-a");
  const auto high = gang("high", 2, 4, 100);
  EXPECT_THAT(victims(high[0], {"big-a"}), SizeIs(1));
  test_.clock().advance(60 * kSecond);
  gangs_.tick();
  EXPECT_FALSE(gangs_.keeps_nodes());
  EXPECT_THAT(victims(high[0], {"big-a"}), SizeIs(1));
  begins_to_leave("low");
  test_.clock().advance(90 * kSecond);
  gangs_.tick();
  EXPECT_TRUE(gangs_.keeps_nodes());
}

// kube-scheduler says of each node that evicting one of its two pods would violate a budget.
TEST_F(GangPreempt, BudgetsCountBeforePriority) {
  run(pod("a1", 4, 1), "big-a");
  run(pod("a2", 4, 1), "big-a");
  run(pod("b", 8, 50), "big-b");
  const auto high = gang("high", 2, 4, 100);
  PreemptionQuestion question;
  question.pod.object = high[0];
  question.pod.pod = *kube::pod_request(high[0]);
  question.args.candidates.push_back({"big-a", {{"a1", {}}, {"a2", {}}}, 1});
  question.args.candidates.push_back({"big-b", {{"b", {}}}, 0});
  const auto answer = test_.handlers().preempt(question);
  ASSERT_THAT(answer, SizeIs(1));
  EXPECT_THAT(answer[0].uids, ElementsAre("b"));
  EXPECT_EQ(answer[0].pdb_violations, 0);
}

TEST_F(GangPreempt, MembersOfSeveralKindsAreAskedAboutBeforeAnybodyGoes) {
  run(pod("low", 8, 10), "big-a");
  kube::Pod leader = member("high", 0, 2, 2, 100);
  const kube::Pod worker = member("high", 1, 4, 2, 100);
  feed_.update(leader);
  feed_.update(worker);
  EXPECT_THAT(preempt(leader, {"big-a"}), IsEmpty());
  EXPECT_EQ(gangs_.next_kick()->uid, "high-1");
  EXPECT_THAT(victims(worker, {"big-a"}), ElementsAre("low"));
}

TEST_F(GangPreempt, PlacesThatAreOnlyReservedForALowerGangAreGivenBackAndNobodyGoes) {
  run(pod("low", 8, 10), "big-a");
  const auto waiting = gang("waiting", 2, 4, 20);
  EXPECT_EQ(passed(waiting[0], {"big-b"}), "big-b");
  const auto high = gang("high", 2, 4, 100);
  EXPECT_THAT(preempt(high[0], {"big-a", "big-b"}), IsEmpty());
  EXPECT_EQ(passed(high[0], {"big-b"}), "big-b");
}

}  // namespace
}  // namespace mortise::extender
