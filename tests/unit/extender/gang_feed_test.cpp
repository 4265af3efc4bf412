// From pods and group objects to gangs, and what kube-scheduler is answered about their members.
#include "scheduler/extender/gang_feed.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/unit/extender/gang_feed_fixture.h"

namespace mortise::extender {
namespace {

TEST_F(GangFeedTest, EachMemberPassesOnItsOwnNodeOnlyAndOnlyWhenAllHaveOne) {
  const kube::Pod first = member("g", 0, 8, 2);
  const kube::Pod second = member("g", 1, 8, 2);
  EXPECT_EQ(reason_of(filter(first), "big-a"), "GangIncomplete: fewer members are there than must start together");
  EXPECT_EQ(with_verdict(filter(second), Verdict::kPassed), std::vector<std::string>{"big-b"});
  const FilterResult answer = filter(first);
  EXPECT_EQ(with_verdict(answer, Verdict::kPassed), std::vector<std::string>{"big-a"});
  EXPECT_EQ(reason_of(answer, "big-b"), "GangElsewhere: the gang's place for this member is on another node");
  EXPECT_EQ(answer.nodes.size(), 4U);
  EXPECT_EQ(bind(first, "big-a"), "");
  EXPECT_EQ(bind(second, "big-b"), "");
  EXPECT_EQ(phase(), GangPhase::kRunning);
}

TEST_F(GangFeedTest, AMemberIsNotBoundWhereItsGangHoldsNoPlace) {
  const kube::Pod first = member("g", 0, 8, 2);
  (void)filter(first);
  EXPECT_NE(bind(first, "big-a").find("its gang holds no place for it on node big-a"), std::string::npos);
}

TEST_F(GangFeedTest, MembersWaitForTheirGroupObjectAndGoOnWithIt) {
  const kube::Pod first = of_pod_group("a", "pg");
  const kube::Pod second = of_pod_group("b", "pg");
  feed_.update(first);
  feed_.update(second);
  EXPECT_EQ(reason_of(filter(first), "big-a"), "GangWaits: waits for its group object PodGroup default/pg");
  feed_.put("scheduling.x-k8s.io", pod_group("pg", 2));
  EXPECT_EQ(with_verdict(filter(first), Verdict::kPassed).size(), 1U);
  // A list without it, after the watch was interrupted.
  feed_.replace(kube::GroupKind::kPodGroup, "scheduling.x-k8s.io", {});
  EXPECT_EQ(phase(), GangPhase::kWaitsForObject);
  EXPECT_EQ(test_.bookings().reserved(), 0U);
}

TEST_F(GangFeedTest, GatedFailedAndDeletedPodsDoNotCount) {
  feed_.update(member("g", 0, 1, 2));
  kube::Pod other = member("g", 1, 1, 2);
  other.gated = true;
  feed_.update(other);
  EXPECT_EQ(phase(), GangPhase::kIncomplete);
  other.gated = false;
  feed_.update(other);
  EXPECT_EQ(phase(), GangPhase::kReady);
  other.phase = "Failed";
  feed_.update(other);
  EXPECT_EQ(phase(), GangPhase::kIncomplete);
  const kube::Pod third = member("g", 2, 1, 2);
  feed_.update(third);
  EXPECT_EQ(phase(), GangPhase::kReady);
  feed_.gone(third.uid);
  EXPECT_EQ(phase(), GangPhase::kIncomplete);
  // kube-scheduler may ask about it for a moment yet.
  EXPECT_EQ(reason_of(filter(third), "big-a"), "GangInvalid: the pod is gone");
  EXPECT_EQ(phase(), GangPhase::kIncomplete);
}

// A list shows what was so when it was answered; kube-scheduler may ask about a newer pod before it is taken over.
TEST_F(GangFeedTest, AMemberThatIsNewerThanAListStaysAndOneThatTheListLacksDoesNot) {
  const kube::Pod old = member("g", 0, 1, 2);
  feed_.update(old);
  feed_.list_starts();
  const kube::Pod newer = member("g", 1, 1, 2);
  EXPECT_EQ(with_verdict(filter(newer), Verdict::kPassed).size(), 1U);
  feed_.keep_only({old.uid}, true);
  EXPECT_EQ(phase(), GangPhase::kReserved);
  EXPECT_EQ(with_verdict(filter(newer), Verdict::kPassed).size(), 1U);
  feed_.list_starts();
  feed_.keep_only({old.uid}, true);
  EXPECT_EQ(phase(), GangPhase::kIncomplete);
}

TEST_F(GangFeedTest, MembersOfNativePodGroupsAreKubeSchedulersAffair) {
  kube::Pod native = pod("n", 1);
  native.pod_group = "pg";
  kube::GroupObject group = pod_group("pg", 2);
  group.kind = kube::GroupKind::kNativePodGroup;
  feed_.put("scheduling.k8s.io", group);
  feed_.update(native);
  EXPECT_TRUE(gangs_.gangs().empty());
  EXPECT_EQ(with_verdict(filter(native), Verdict::kPassed).size(), 1U);
}

// koordinator#872: gangs A and B start together, and C and D; each has two pods; four places, asked about in the order
// A C B D. Here a place is half of a node. (Numbers of this page's source, not of the report.)
TEST_F(GangFeedTest, GangsThatStartTogetherAreOne) {
  const auto grouped = [](const std::string& gang, int number, const std::string& groups) {
    kube::Pod made = pod(gang + "-" + std::to_string(number), 4);
    made.annotations = {{"gang.scheduling.koordinator.sh/name", gang},
                        {"gang.scheduling.koordinator.sh/min-available", "2"},
                        {"gang.scheduling.koordinator.sh/groups", groups}};
    return made;
  };
  const std::string ab = R"(["default/A","default/B"])";
  const std::string cd = R"(["default/C","default/D"])";
  std::vector<kube::Pod> pods;
  for (const auto& [gang, groups] : {std::pair("A", ab), {"C", cd}, {"B", ab}, {"D", cd}}) {
    for (int i = 0; i < 2; ++i) pods.push_back(grouped(gang, i, groups));
  }
  for (const kube::Pod& one : pods) feed_.update(one);
  // A is told to wait until B has been asked about, too; C and D are told that there is no room.
  for (const kube::Pod& one : pods) (void)filter(one);
  for (const kube::Pod& one : pods) {
    const bool passes = !with_verdict(filter(one), Verdict::kPassed).empty();
    EXPECT_EQ(passes, one.name[0] == 'A' || one.name[0] == 'B') << one.name;
  }
  EXPECT_EQ(test_.bookings().reserved(), 4U);
}

// koordinator#872, the comment: A has ten pods and a minimum of three, and starts together with B. A's pods beyond the
// minimum must not take what B needs. Four places; B needs one.
TEST_F(GangFeedTest, MembersBeyondTheMinimumLeaveRoomForGangsThatStartTogether) {
  const auto grouped = [](const std::string& gang, int number, int minimum) {
    kube::Pod made = pod(gang + "-" + std::to_string(number), 4);
    made.annotations = {{"gang.scheduling.koordinator.sh/name", gang},
                        {"gang.scheduling.koordinator.sh/min-available", std::to_string(minimum)},
                        {"gang.scheduling.koordinator.sh/groups", R"(["default/A","default/B"])"}};
    return made;
  };
  std::vector<kube::Pod> pods;
  for (int i = 0; i < 10; ++i) pods.push_back(grouped("A", i, 3));
  for (const kube::Pod& one : pods) EXPECT_TRUE(with_verdict(filter(one), Verdict::kPassed).empty());
  EXPECT_EQ(test_.bookings().reserved(), 0U);
  pods.push_back(grouped("B", 0, 1));
  for (const kube::Pod& one : pods) (void)filter(one);
  std::map<char, int> placed;
  for (const kube::Pod& one : pods) {
    if (!with_verdict(filter(one), Verdict::kPassed).empty()) ++placed[one.name[0]];
  }
  EXPECT_EQ(placed, (std::map<char, int>{{'A', 3}, {'B', 1}}));
}

// kueue#14570: a gang and a pod were given the same node within one cycle, and one of the gang's pods waited for a node
// that was full. Here whoever is asked about first has it, and the other is refused.
TEST_F(GangFeedTest, AGangAndAPodAreNotGivenTheSameNode) {
  const kube::Pod first = member("g", 0, 8, 2);
  const kube::Pod second = member("g", 1, 8, 2);
  const kube::Pod single = pod("single", 8);
  EXPECT_EQ(with_verdict(filter(single), Verdict::kPassed), std::vector<std::string>{"big-a"});  // and is not bound yet
  (void)filter(first);
  EXPECT_EQ(with_verdict(filter(second), Verdict::kPassed), std::vector<std::string>{"big-b"});
  EXPECT_NE(bind(single, "big-a"), "");
  EXPECT_TRUE(with_verdict(filter(single), Verdict::kPassed).empty());
  EXPECT_EQ(with_verdict(filter(first), Verdict::kPassed), std::vector<std::string>{"big-a"});
  EXPECT_EQ(bind(first, "big-a"), "");
  EXPECT_EQ(bind(second, "big-b"), "");
}

TEST_F(GangFeedTest, AGangIsNotGivenTheNodeOfAPod) {
  const kube::Pod single = pod("single", 8);
  (void)filter(single);
  ASSERT_EQ(bind(single, "big-a"), "");
  (void)filter(member("g", 0, 8, 2));
  EXPECT_TRUE(with_verdict(filter(member("g", 1, 8, 2)), Verdict::kPassed).empty());
  EXPECT_EQ(test_.bookings().reserved(), 0U);
}

// HAMi#1832, #1130, #810: members that go to one node got in each other's way at bind, for a lock of that node. There
// is no such lock here: eight on one node are bound one after another, and no time passes.
TEST_F(GangFeedTest, MembersOnOneNodeAreBoundOneAfterAnother) {
  std::vector<kube::Pod> pods;
  for (int i = 0; i < 8; ++i) pods.push_back(member("g", i, 1, 8));
  for (const kube::Pod& one : pods) (void)filter(one);
  for (const kube::Pod& one : pods) {
    EXPECT_EQ(with_verdict(filter(one), Verdict::kPassed), std::vector<std::string>{"big-a"});
    EXPECT_EQ(bind(one, "big-a"), "");
  }
  EXPECT_EQ(phase(), GangPhase::kRunning);
}

// kubernetes#96579: the answer to a binding was lost, and it is asked for again.
TEST_F(GangFeedTest, ABindingThatIsAskedForAgainIsNoError) {
  const kube::Pod first = member("g", 0, 8, 2);
  const kube::Pod second = member("g", 1, 8, 2);
  (void)filter(first);
  (void)filter(second);
  ASSERT_EQ(bind(first, "big-a"), "");
  EXPECT_EQ(bind(first, "big-a"), "");
  EXPECT_EQ(bind(second, "big-b"), "");
  EXPECT_EQ(bind(first, "big-a"), "");
  EXPECT_EQ(phase(), GangPhase::kRunning);
}

// kubernetes#122019: whom an extender refuses must wait for something to change. So "not yet" is a reason of every
// node, always the same, and no error.
TEST_F(GangFeedTest, NotYetIsAReasonOfEveryNodeAndNoError) {
  const kube::Pod first = member("g", 0, 8, 2);
  for (int round = 0; round < 2; ++round) {
    const FilterResult answer = filter(first);
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(with_verdict(answer, Verdict::kFailed).size(), 4U);
    for (const char* node : {"big-a", "big-b", "small", "plain"}) {
      EXPECT_EQ(reason_of(answer, node), "GangIncomplete: fewer members are there than must start together");
    }
    test_.clock().advance(1 * kSecond);
  }
}

// lws#167: four nodes of one GPU and four replicas of two: the four leaders, which come first, took everything. Here a
// place is half of a node.
TEST_F(GangFeedTest, LeadersThatComeFirstTakeNothingFromReplicasThatCanStart) {
  const auto of_replica = [](int replica, int worker) {
    const std::string index = std::to_string(replica);
    kube::Pod made = pod("llm-" + index + (worker == 0 ? "" : "-" + std::to_string(worker)), 4);
    made.labels = {{"leaderworkerset.sigs.k8s.io/name", "llm"},
                   {"leaderworkerset.sigs.k8s.io/group-index", index},
                   {"leaderworkerset.sigs.k8s.io/worker-index", std::to_string(worker)},
                   {"leaderworkerset.sigs.k8s.io/template-revision-hash", "r1"}};
    made.annotations = {{"leaderworkerset.sigs.k8s.io/size", "2"}};
    return made;
  };
  std::vector<kube::Pod> pods;
  for (int replica = 0; replica < 4; ++replica) pods.push_back(of_replica(replica, 0));
  for (const kube::Pod& leader : pods) EXPECT_TRUE(with_verdict(filter(leader), Verdict::kPassed).empty());
  EXPECT_EQ(test_.bookings().reserved(), 0U);
  for (int replica = 0; replica < 4; ++replica) pods.push_back(of_replica(replica, 1));
  for (const kube::Pod& one : pods) (void)filter(one);
  std::map<std::string, int> placed;  // by replica
  for (const kube::Pod& one : pods) {
    if (!with_verdict(filter(one), Verdict::kPassed).empty()) ++placed[one.name.substr(0, 5)];
  }
  EXPECT_EQ(placed.size(), 2U);
  for (const auto& [replica, members] : placed) EXPECT_EQ(members, 2) << replica;
}

TEST_F(GangFeedTest, APodThatIsCreatedAnewCountsOnceAndTheOldOneHoldsNothing) {
  const auto made = [](int number, const std::string& uid) {
    kube::Pod pod = member("g", number, 8, 2);
    pod.uid = uid;
    return pod;
  };
  (void)filter(made(0, "old-0"));
  EXPECT_EQ(with_verdict(filter(made(1, "old-1")), Verdict::kPassed).size(), 1U);
  EXPECT_EQ(test_.bookings().reserved(), 2U);
  EXPECT_TRUE(with_verdict(filter(made(0, "new-0")), Verdict::kPassed).size() == 1U);
  EXPECT_EQ(test_.bookings().find("old-0"), nullptr);
  EXPECT_EQ(gangs_.gangs().begin()->second.members.size(), 2U);
  // kube-scheduler may know the old one for a moment yet.
  EXPECT_EQ(reason_of(filter(made(0, "old-0")), "big-a"), "GangInvalid: the pod is gone");
  EXPECT_EQ(gangs_.gangs().begin()->second.members.size(), 2U);
}

TEST_F(GangFeedTest, TheNodeOfABoundMemberIsFreeForThePodThatHasItsNameNow) {
  kube::Pod pod = member("g", 0, 8, 1);
  (void)filter(pod);
  pod.annotations["mortise.dev/gang-min-member"] = "2";
  const kube::Pod other = member("g", 1, 8, 2);
  (void)filter(pod);
  (void)filter(other);
  ASSERT_EQ(bind(pod, "big-a"), "");
  ASSERT_EQ(bind(other, "big-b"), "");
  pod.uid = "new";
  EXPECT_EQ(with_verdict(filter(pod), Verdict::kPassed), std::vector<std::string>{"big-a"});
  EXPECT_EQ(bind(pod, "big-a"), "");
}

TEST_F(GangFeedTest, AMemberWithoutUidIsRefused) {
  kube::Pod pod = member("g", 0, 1, 2);
  pod.uid.clear();
  EXPECT_EQ(reason_of(filter(pod), "big-a"), "GangInvalid: the pod has no UID, by which members are told apart");
}

TEST_F(GangFeedTest, WhereNobodyTellsAMemberWithoutPlaceIsForgottenTenMinutesAfterItsLastQuestion) {
  feed_.forget_by(test_.clock());
  const kube::Pod first = member("g", 0, 8, 1);
  kube::Pod pair = member("h", 0, 1, 2);
  ASSERT_TRUE(gangs_.gangs().empty());
  (void)filter(pair);
  test_.clock().advance(599 * kSecond);
  (void)filter(pod("single", 1));
  EXPECT_EQ(gangs_.gangs().size(), 1U);
  (void)filter(pair);
  test_.clock().advance(599 * kSecond);
  (void)filter(pod("single", 1));
  EXPECT_EQ(gangs_.gangs().size(), 1U);
  test_.clock().advance(1 * kSecond);
  (void)filter(pod("single", 1));
  EXPECT_TRUE(gangs_.gangs().empty());
}

TEST_F(GangFeedTest, AMemberThatHasAPlaceIsNotForgotten) {
  feed_.forget_by(test_.clock());
  const kube::Pod first = member("g", 0, 8, 2);
  const kube::Pod second = member("g", 1, 8, 2);
  (void)filter(first);
  (void)filter(second);
  ASSERT_EQ(bind(first, "big-a"), "");
  for (int i = 0; i < 3; ++i) {
    test_.clock().advance(600 * kSecond);
    (void)filter(pod("single", 1));
  }
  ASSERT_EQ(gangs_.gangs().size(), 1U);
  EXPECT_EQ(gangs_.gangs().begin()->second.members.size(), 1U);
  EXPECT_TRUE(gangs_.is_member(first.uid));
}

TEST_F(GangFeedTest, WhereSomebodyTellsAMemberIsNotForgotten) {
  (void)filter(member("g", 0, 8, 2));
  test_.clock().advance(3600 * kSecond);
  (void)filter(pod("single", 1));
  EXPECT_EQ(gangs_.gangs().size(), 1U);
}

kube::Pod of_groups(kube::Pod pod, const std::string& name, const std::string& minimum, const std::string& groups) {
  pod.annotations = {{"gang.scheduling.koordinator.sh/name", name},
                     {"gang.scheduling.koordinator.sh/min-available", minimum},
                     {"gang.scheduling.koordinator.sh/groups", groups}};
  return pod;
}

TEST_F(GangFeedTest, WhatGangsThatStartTogetherSaidEndsWithTheirLastPod) {
  const std::string groups = R"(["default/x","default/y"])";
  const kube::Pod of_x = of_groups(pod("x-0", 1), "x", "1", groups);
  (void)filter(of_x);
  feed_.gone(of_x.uid);
  EXPECT_EQ(reason_of(filter(of_groups(pod("y-0", 1), "y", "1", groups)), "big-a"),
            "GangWaits: waits for gang default/x, with which it starts together");
}

TEST_F(GangFeedTest, WhatGangsThatStartTogetherSaidStaysWhenTheOnlyMemberThereSaysSomethingElse) {
  const std::string groups = R"(["default/x","default/y"])";
  const kube::Pod of_y = of_groups(pod("y-0", 1), "y", "1", groups);
  (void)filter(of_groups(pod("x-0", 1), "x", "1", groups));
  (void)filter(of_y);
  feed_.gone(of_y.uid);
  EXPECT_TRUE(reason_of(filter(of_groups(pod("x-0", 1), "x", "2", groups)), "big-a").starts_with("GangIncomplete: "));
}

// 3 x 1,000,000.
TEST_F(GangFeedTest, GangsThatTogetherAreLargerThanAnyThatIsPlacedAreRefusedWithTheArithmetic) {
  const std::string groups = R"(["default/x","default/y","default/z"])";
  for (const char* name : {"x", "y", "z"}) (void)filter(of_groups(pod(name, 1), name, "1000000", groups));
  EXPECT_EQ(reason_of(filter(of_groups(pod("x", 1), "x", "1000000", groups)), "big-a"),
            "GangInvalid: its 3 gangs need 3000000 members together; 16384 are the most that are placed as one");
}

TEST_F(GangFeedTest, AGangLargerThanAnyThatIsPlacedIsRefusedWithTheArithmetic) {
  EXPECT_EQ(reason_of(filter(member("g", 0, 1, 16'385)), "big-a"),
            "GangInvalid: needs 16385 members together; 16384 are the most that are placed as one");
  EXPECT_TRUE(reason_of(filter(member("h", 0, 1, 16'384)), "big-a").starts_with("GangIncomplete"));
}

TEST_F(GangFeedTest, MembersThatContradictOneAnotherAreRefusedWithBothValues) {
  (void)filter(member("g", 0, 8, 2));
  const kube::Pod other = member("g", 1, 8, 3);
  EXPECT_EQ(reason_of(filter(other), "big-a"),
            "GangInvalid: members say that 2 and that 3 must start together; give all of them one minimum");
  // The first hears the same, and they go on once the second one says the same.
  EXPECT_TRUE(reason_of(filter(member("g", 0, 8, 2)), "big-a").starts_with("GangInvalid: members say that 2 and"));
  EXPECT_EQ(with_verdict(filter(member("g", 1, 8, 2)), Verdict::kPassed).size(), 1U);
}

TEST_F(GangFeedTest, MembersThatRequireDifferentLevelsAreRefusedWhoeverCameLast) {
  const auto asking = [](int number, const std::string& level) {
    kube::Pod made = member("g", number, 8, 2);
    made.annotations["mortise.dev/topology-required"] = level;
    return made;
  };
  const std::string why = "GangInvalid: it must be in one node and in one rack; one level may be required";
  (void)filter(asking(0, "rack"));
  EXPECT_EQ(reason_of(filter(asking(1, "node")), "big-a"), why);
  EXPECT_EQ(reason_of(filter(asking(0, "rack")), "big-a"), why);
  feed_.gone("g-1");
  EXPECT_EQ(phase(), GangPhase::kIncomplete);
}

// What a group object says is the same for all members at any time: a change of it is no contradiction.
TEST_F(GangFeedTest, AnotherMinimumOfTheGroupObjectIsNoContradiction) {
  feed_.put("scheduling.x-k8s.io", pod_group("pg", 2));
  for (const char* name : {"a", "b", "c"}) feed_.update(of_pod_group(name, "pg"));
  for (const char* name : {"a", "b"}) (void)filter(of_pod_group(name, "pg"));
  EXPECT_EQ(phase(), GangPhase::kReserved);
  const std::size_t held = test_.bookings().reserved();
  feed_.put("scheduling.x-k8s.io", pod_group("pg", 3));
  EXPECT_EQ(test_.bookings().reserved(), held);
}

}  // namespace
}  // namespace mortise::extender
