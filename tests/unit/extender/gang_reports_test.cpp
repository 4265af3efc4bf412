// What users of other schedulers reported of the life of their gangs. What is right is what they expected; sizes are
// ours unless a comment says otherwise.
#include <set>

#include "tests/unit/extender/gangs_fixture.h"

namespace mortise::extender {
namespace {

class GangReports : public GangsTest {
 protected:
  static std::string name(const GangSpec& spec, int number) { return spec.key + "-" + std::to_string(number); }
  static GangSpec of_roles(const std::string& key, std::int32_t minimum, std::vector<GangRoleNeed> roles) {
    GangSpec spec = gang(key, minimum);
    spec.roles = std::move(roles);
    return spec;
  }
};

// scheduler-plugins#713: nine of ten nodes fit. The gang of ten holds nothing however often it is asked about, and one
// of nine runs meanwhile.
TEST_F(GangReports, Sp713AGangThatLacksOneNodeBlocksNobody) {
  for (int i = 0; i < 10; ++i) node("n" + std::to_string(i), "r1", i == 4 ? 7 : 8);
  members(gang("ten", 10), 0, 10, 8);
  members(gang("nine", 9), 0, 9, 8);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(where("ten-" + std::to_string(i)), kNoRoom);
    EXPECT_EQ(bookings_.reserved(), 0U);
  }
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(cluster_.find_node(run("nine-" + std::to_string(i))).has_value());
  EXPECT_EQ(phase("nine"), GangPhase::kRunning);
}

// scheduler-plugins#397: two of four come first, and the group object after them. Whoever was told to wait hears of it
// when all can start, and nobody needs time to pass.
TEST_F(GangReports, Sp397WhoeverCameBeforeTheOthersOrTheGroupObjectIsWoken) {
  node("a", "r1");
  GangSpec without = gang("g", 0);
  without.waits_for = "waits for its group object";
  members(without, 0, 2, 2);
  EXPECT_TRUE(where("g-0").starts_with("GangWaits"));
  EXPECT_TRUE(where("g-1").starts_with("GangWaits"));
  const GangSpec spec = gang("g", 4);
  gangs_.respecify(spec);
  EXPECT_TRUE(where("g-1").starts_with("GangIncomplete"));
  members(spec, 2, 4, 2);
  EXPECT_EQ(run("g-2"), "a");
  EXPECT_EQ(woken(), (std::vector<std::string>{"g-0", "g-1"})) << "g-3 is asked about without that";
  for (const char* uid : {"g-0", "g-1", "g-3"}) EXPECT_EQ(run(uid), "a");
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
}

// scheduler-plugins#450, #358, #364, #416: a gang whose members were not all there yet was marked as failed, and
// started minutes late. The sizes are theirs.
TEST_F(GangReports, Sp450MembersThatAreNotThereYetAreNoFailure) {
  int number = 0;
  for (const int size : {2, 5, 6, 8}) {
    node("n" + std::to_string(++number), "r1");
    const GangSpec spec = gang("g" + std::to_string(size), size);
    for (int i = 0; i + 1 < size; ++i) {
      members(spec, i, i + 1, 1);
      EXPECT_TRUE(where(name(spec, i)).starts_with("GangIncomplete"));
    }
    EXPECT_EQ(phase(spec.key), GangPhase::kIncomplete);
    EXPECT_FALSE(gangs_.gangs().find(spec.key)->second.blocked_since.has_value());
    members(spec, size - 1, size, 1);
    for (int i = size - 1; i >= 0; --i) EXPECT_TRUE(cluster_.find_node(run(name(spec, i))).has_value());
    EXPECT_EQ(phase(spec.key), GangPhase::kRunning);
  }
  EXPECT_EQ(gangs_.figures().refusals, 0U);
}

// volcano#6010: the group object already says five, and news of that comes after the new pods. What the old minimum
// let one of them have is not used: none of the three is bound before there is room for all of them.
TEST_F(GangReports, Volcano6010NothingIsBoundByAMinimumThatIsOutOfDate) {
  node("a", "r1", 4);
  members(gang("g", 2), 0, 5, 1);
  EXPECT_EQ(run("g-0"), "a");
  EXPECT_EQ(run("g-1"), "a");
  EXPECT_EQ(where("g-2"), "a") << "as one above the minimum";
  gangs_.respecify(gang("g", 5));
  EXPECT_FALSE(gangs_.start_bind("g-2", "a").empty());
  for (const char* uid : {"g-2", "g-3", "g-4"}) EXPECT_EQ(where(uid), kNoRoom);
  EXPECT_FALSE(gangs_.start_bind("g-2", "a").empty());
  EXPECT_EQ(phase("g"), GangPhase::kDegraded);
  EXPECT_EQ(bookings_.find("g-0")->stage, Booking::Stage::kBound);
  release("filler-a");
  for (const char* uid : {"g-2", "g-3", "g-4"}) EXPECT_EQ(run(uid), "a");
}

// volcano#4383: a binding failed, and the group was called running. kubernetes#140263: or it was stuck.
TEST_F(GangReports, Volcano4383AGangOfWhichABindingFailedIsNotRunning) {
  node("a", "r1");
  members(gang("g", 2), 0, 2, 4);
  EXPECT_EQ(run("g-0"), "a");
  ASSERT_EQ(where("g-1"), "a");
  ASSERT_EQ(gangs_.start_bind("g-1", "a"), "");
  bookings_.start_binding("g-1");
  EXPECT_EQ(phase("g"), GangPhase::kBinding);
  bookings_.binding_failed("g-1");
  EXPECT_NE(phase("g"), GangPhase::kRunning);
  EXPECT_EQ(run("g-1"), "a") << "and it is tried again";
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
}

// volcano#4739: a Deployment of two with one more while it is rolled out, and a minimum of two. The pod of the new
// revision asks for something else, and starts while both old ones run.
TEST_F(GangReports, Volcano4739ARollingUpdateGoesOnWithinTheGang) {
  node("a", "r1");
  const GangSpec spec = gang("g", 2);
  members(spec, 0, 2, 2);
  run("g-0");
  run("g-1");
  for (const int old : {0, 1}) {
    const std::string fresh = name(spec, 2 + old);
    members(spec, 2 + old, 3 + old, 3);
    EXPECT_EQ(run(fresh), "a");
    end(name(spec, old));
    EXPECT_EQ(phase("g"), GangPhase::kRunning);
  }
}

// KAI#500: a Ray cluster beyond what there is got a part of it. Quotas are not ours; room is. The head, which needs no
// GPU, does not start without its workers.
TEST_F(GangReports, Kai500AHeadDoesNotStartWithoutItsWorkers) {
  node("a", "r1");
  node("b", "r1");
  const GangSpec spec = of_roles("ray", 4, {{"head", 1}, {"worker", 3}});
  gangs_.see(spec, {request("head", 0, 0), "head", ""});
  for (const char* uid : {"w0", "w1", "w2"}) gangs_.see(spec, {request(uid, 8, 0), "worker", ""});
  for (int round = 0; round < 2; ++round) {
    for (const char* uid : {"head", "w0", "w1", "w2"}) EXPECT_FALSE(cluster_.find_node(where(uid)).has_value());
  }
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(phase("ray"), GangPhase::kNeverFits);
  node("c", "r2");
  gangs_.nodes_changed();
  (void)where("head");
  for (const char* uid : {"w0", "w1", "w2", "head"}) EXPECT_TRUE(cluster_.find_node(run(uid)).has_value());
}

// KAI pull requests 755 and 776: a gang like one that did not fit, but of another topology, was passed over.
TEST_F(GangReports, Kai776WhatDoesNotFitInOneRackSaysNothingOfOthersThatAskForTheSame) {
  node("a", "r1");
  node("b", "r2");
  node("c", "r1", 0);
  members(gang("one-rack", 2, "rack"), 0, 2, 8);
  members(gang("anywhere", 2), 0, 2, 8);
  EXPECT_EQ(where("one-rack-0"), kNoRoom);
  EXPECT_EQ(run("anywhere-0"), "a");
  EXPECT_EQ(run("anywhere-1"), "b");
}

// KAI#2208: a sub-group of which nobody was left kept what it held.
TEST_F(GangReports, Kai2208ARoleWithoutMembersLeavesNothingHeld) {
  node("a", "r1");
  const GangSpec spec = of_roles("g", 3, {{"master", 1}, {"worker", 2}});
  gangs_.see(spec, {request("m", 0, 0), "master", ""});
  for (const char* uid : {"w0", "w1"}) gangs_.see(spec, {request(uid, 4, 0), "worker", ""});
  (void)where("m");
  EXPECT_EQ(where("w0"), "a");
  EXPECT_EQ(bookings_.reserved(), 3U);
  end("w0");
  end("w1");
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(cluster_.state_of(*cluster_.find_node("a")).whole_free(), 8);
  EXPECT_EQ(phase("g"), GangPhase::kIncomplete);
}

// koordinator#1701: 255 pods were never tried again after room had come. The number is theirs; here they are once one
// gang and once 255 of one pod each.
TEST_F(GangReports, Koordinator1701AllAreTriedAgainWhenRoomComes) {
  for (int i = 0; i < 32; ++i) node("n" + std::to_string(i), "r1", 0);
  const GangSpec spec = gang("g", 255);
  members(spec, 0, 255, 1);
  for (int i = 0; i < 255; ++i) EXPECT_EQ(where(name(spec, i)), kNoRoom);
  for (int i = 0; i < 32; ++i) release("filler-n" + std::to_string(i));
  const std::vector<std::string> scout = woken();
  ASSERT_EQ(scout.size(), 1U);
  EXPECT_TRUE(cluster_.find_node(run(scout.front())).has_value());
  EXPECT_EQ(woken().size(), 254U);
  for (int i = 0; i < 255; ++i) {
    if (name(spec, i) == scout.front()) continue;
    EXPECT_TRUE(cluster_.find_node(run(name(spec, i))).has_value());
  }
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
}

TEST_F(GangReports, Koordinator1701SoAreManyGangs) {
  for (int i = 0; i < 32; ++i) node("n" + std::to_string(i), "r1", 0);
  std::set<std::string> waiting;
  for (int i = 0; i < 255; ++i) {
    const GangSpec spec = gang("g" + std::to_string(i), 1);
    members(spec, 0, 1, 1);
    EXPECT_EQ(where(name(spec, 0)), kNoRoom);
    waiting.insert(name(spec, 0));
  }
  for (int i = 0; i < 32; ++i) release("filler-n" + std::to_string(i));
  for (int second = 0; second < 60 && !waiting.empty(); ++second) {
    for (const std::string& uid : woken()) {
      EXPECT_TRUE(cluster_.find_node(run(uid)).has_value());
      waiting.erase(uid);
    }
    clock_.advance(1 * kSecond);
  }
  EXPECT_TRUE(waiting.empty()) << waiting.size() << " were never woken";
}

// kueue#2208: a member that was deleted while it waited still counted, and its replacement was refused.
TEST_F(GangReports, Kueue2208TheReplacementOfAMemberThatWaitedIsTaken) {
  node("a", "r1", 0);
  const GangSpec spec = gang("g", 2);
  members(spec, 0, 2, 4);
  EXPECT_EQ(where("g-0"), kNoRoom);
  end("g-1");
  EXPECT_EQ(phase("g"), GangPhase::kIncomplete) << "who is gone does not count";
  members(spec, 2, 3, 4);
  release("filler-a");
  EXPECT_EQ(run("g-2"), "a");
  EXPECT_EQ(run("g-0"), "a");
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
}

// kueue pull request 15734: a member that had succeeded counted as not ready, and the others were stopped.
TEST_F(GangReports, Kueue15734WithAMemberThatHasSucceededTheReplacementOfAnotherStarts) {
  node("a", "r1", 2);
  const GangSpec spec = gang("g", 2);
  members(spec, 0, 2, 1);
  run("g-0");
  run("g-1");
  gangs_.succeeded("g-0");
  bookings_.ended("g-0");
  end("g-1");
  members(spec, 2, 3, 1);
  EXPECT_EQ(run("g-2"), "a");
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
}

// scheduler-plugins#682: members of a gang that did not fit woke one another without end.
TEST_F(GangReports, Sp682AGangThatDoesNotFitWakesNobodyByBeingAskedAbout) {
  node("a", "r1", 4);
  node("b", "r1", 4);
  members(gang("g", 12), 0, 12, 1);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 12; ++i) EXPECT_EQ(where("g-" + std::to_string(i)), kNoRoom);
    EXPECT_TRUE(woken().empty());
    clock_.advance(1 * kSecond);
  }
  for (int i = 0; i < 100; ++i) gangs_.freed();
  EXPECT_EQ(woken().size(), 1U) << "of each kind one, when something becomes free";
  gangs_.freed();
  EXPECT_TRUE(woken().empty()) << "and not again within a second";
}

// kuberay#5205: the group object is not changed when the cluster is scaled or suspended. More workers than it says
// start one by one; of a suspended cluster nothing is left, and it starts whole again.
TEST_F(GangReports, Kuberay5205AClusterIsScaledAndSuspendedWhileItsGroupObjectStays) {
  node("a", "r1", 6);
  const GangSpec spec = gang("ray", 3);
  members(spec, 0, 3, 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(name(spec, i)), "a");
  members(spec, 3, 5, 1);
  for (int i = 3; i < 5; ++i) EXPECT_EQ(run(name(spec, i)), "a");
  for (int i = 0; i < 5; ++i) end(name(spec, i));
  EXPECT_TRUE(gangs_.gangs().empty());
  EXPECT_EQ(cluster_.state_of(*cluster_.find_node("a")).whole_free(), 6);
  members(spec, 5, 7, 1);
  EXPECT_TRUE(where("ray-5").starts_with("GangIncomplete"));
  members(spec, 7, 8, 1);
  for (int i = 5; i < 8; ++i) EXPECT_EQ(run(name(spec, i)), "a");
}

// volcano#3373: a hundred nodes and two gangs of a hundred at once: one runs, and not half of each.
TEST_F(GangReports, Volcano3373OneOfTwoLargeGangsRunsWhole) {
  for (int i = 0; i < 100; ++i) node("n" + std::to_string(i), "r1");
  members(gang("x", 100), 0, 100, 8);
  members(gang("y", 100), 0, 100, 8);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(cluster_.find_node(run("x-" + std::to_string(i))).has_value());
    EXPECT_EQ(where("y-" + std::to_string(i)), kNoRoom);
  }
  EXPECT_EQ(phase("x"), GangPhase::kRunning);
  EXPECT_EQ(phase("y"), GangPhase::kBlocked);
}

// Of no report: what is preferred need not be met, and what is required must.
TEST_F(GangReports, APreferredLevelThatNoNodeCarriesIsLeftOutAndSaid) {
  node("a", "r1");
  GangSpec spec = gang("g", 2);
  spec.preferred_level = "row";
  members(spec, 0, 2, 4);
  EXPECT_EQ(run("g-0"), "a");
  EXPECT_EQ(gangs_.note(gangs_.gangs().find("g")->second),
            "its preferred level does not count: there is no topology level 'row'; known: rack, node");
  GangSpec other = gang("h", 1);
  other.required_level = "row";
  members(other, 0, 1, 1);
  EXPECT_EQ(where("h-0"), "GangUnknownLevel: there is no topology level 'row'; known: rack, node");
}

}  // namespace
}  // namespace mortise::extender
