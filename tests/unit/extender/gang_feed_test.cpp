// From pods and group objects to gangs, and what kube-scheduler is answered about their members.
#include "scheduler/extender/gang_feed.h"

#include <gtest/gtest.h>

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
