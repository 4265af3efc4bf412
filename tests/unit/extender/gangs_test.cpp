// The life of gangs, case by case. Numbers of reports that are named are those of the report unless a comment says
// otherwise.
#include "tests/unit/extender/gangs_fixture.h"

namespace mortise::extender {
namespace {

// scheduler-plugins#429: the sum of free GPUs is enough, the nodes are not.
TEST_F(GangsTest, AGangThatFitsOnlyBySumHoldsNothing) {
  node("a", "r1", 6);
  node("b", "r1", 2);
  node("c", "r1", 2);
  node("d", "r1", 2);
  members(gang("g", 3), 0, 3, 4);
  for (const char* uid : {"g-0", "g-1", "g-2"}) EXPECT_EQ(where(uid), kNoRoom);
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(phase("g"), GangPhase::kBlocked);
}

// 96 members of 3 GPUs on 40 nodes that take two each, of 16 kinds: more mixes than a search may look at.
TEST_F(GangsTest, ASearchThatWasCutShortIsNoFinalRefusalAndIsSaid) {
  for (int n = 0; n < 40; ++n) node("n" + std::to_string(n), "r1");
  for (int i = 0; i < 96; ++i) {
    placement::PodRequest pod = request("g-" + std::to_string(i), 3, 0);
    pod.cpu = 1 + i % 16;
    gangs_.see(gang("g", 96), {pod, "", ""});
  }
  std::string answer;
  for (int i = 0; i < 16; ++i) answer = where("g-" + std::to_string(i));
  EXPECT_EQ(answer, kNoRoom);
  EXPECT_EQ(phase("g"), GangPhase::kBlocked);
  const std::string told = gangs_.gangs().find("g")->second.refusal->detail;
  EXPECT_TRUE(told.ends_with("at least 80 of these 96 (the search was cut short)")) << told;
}

// scheduler-plugins#114: two gangs of ten, members asked about in turn, on 16 GPUs; a third of six may have the rest.
TEST_F(GangsTest, OfTwoInterleavedGangsOneStartsWholeAndTheOtherHoldsNothing) {
  node("a", "r1");
  node("b", "r1");
  members(gang("x", 10), 0, 10, 1);
  members(gang("y", 10), 0, 10, 1);
  members(gang("z", 6), 0, 6, 1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(cluster_.find_node(run("x-" + std::to_string(i))).has_value());
    EXPECT_EQ(where("y-" + std::to_string(i)), kNoRoom);
  }
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(cluster_.find_node(run("z-" + std::to_string(i))).has_value());
  EXPECT_EQ(phase("x"), GangPhase::kRunning);
  EXPECT_EQ(phase("y"), GangPhase::kBlocked);
  EXPECT_EQ(phase("z"), GangPhase::kRunning);
}

// scheduler-plugins#397 and #450: early members must not count as failed, and hear when the last one is there.
TEST_F(GangsTest, TheLastMemberStartsAllAndWakesThoseThatWereToldToWait) {
  node("a", "r1");
  const GangSpec spec = gang("g", 3);
  members(spec, 0, 2, 2);
  EXPECT_TRUE(where("g-0").starts_with("GangIncomplete"));
  EXPECT_TRUE(where("g-1").starts_with("GangIncomplete"));
  EXPECT_EQ(phase("g"), GangPhase::kIncomplete);
  members(spec, 2, 3, 2);
  EXPECT_EQ(run("g-2"), "a");
  EXPECT_EQ(woken(), (std::vector<std::string>{"g-0", "g-1"}));
  EXPECT_EQ(run("g-0"), "a");
  EXPECT_EQ(run("g-1"), "a");
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
  EXPECT_TRUE(woken().empty());
}

TEST_F(GangsTest, AGroupObjectThatComesLateWakesAMemberOfEachKind) {
  node("a", "r1");
  GangSpec spec = gang("g", 0);
  spec.waits_for = "waits for its group object PodGroup default/g";
  members(spec, 0, 3, 2);
  EXPECT_EQ(where("g-0"), "GangWaits: waits for its group object PodGroup default/g");
  EXPECT_EQ(phase("g"), GangPhase::kWaitsForObject);
  gangs_.respecify(gang("g", 3));
  EXPECT_EQ(woken(), (std::vector<std::string>{"g-0"}));
  EXPECT_EQ(run("g-0"), "a");
}

TEST_F(GangsTest, PlacesThatNobodyComesForAreGivenBackAllAtOnce) {
  node("a", "r1");
  members(gang("g", 4), 0, 4, 2);
  EXPECT_EQ(where("g-0"), "a");
  EXPECT_EQ(bookings_.reserved(), 4U);
  clock_.advance(59 * kSecond);
  EXPECT_EQ(run("g-1"), "a");  // the others have 60 s from here
  clock_.advance(59 * kSecond);
  gangs_.tick();
  EXPECT_EQ(bookings_.reserved(), 3U);
  clock_.advance(1 * kSecond);
  gangs_.tick();
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(phase("g"), GangPhase::kDegraded);
  EXPECT_EQ(gangs_.start_bind("g-0", "a"), "its gang holds no place for it on node a");
}

// volcano#6010: two of two run, the minimum becomes five, and there is room for two more. Sizes mine.
TEST_F(GangsTest, WhenTheMinimumGrowsTheNewMembersStartTogetherOrNotAtAll) {
  node("a", "r1", 4);
  members(gang("g", 2), 0, 2, 1);
  EXPECT_EQ(run("g-0"), "a");
  EXPECT_EQ(run("g-1"), "a");
  gangs_.respecify(gang("g", 5));
  members(gang("g", 5), 2, 5, 1);
  for (const char* uid : {"g-2", "g-3", "g-4"}) EXPECT_EQ(where(uid), kNoRoom);
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(bookings_.find("g-0")->stage, Booking::Stage::kBound);
  release("filler-a");
  for (const char* uid : {"g-2", "g-3", "g-4"}) EXPECT_EQ(run(uid), "a");
}

TEST_F(GangsTest, MembersAboveTheMinimumComeOneByOne) {
  node("a", "r1", 3);
  members(gang("g", 2), 0, 4, 1);
  for (const char* uid : {"g-0", "g-1", "g-2"}) EXPECT_EQ(run(uid), "a");
  EXPECT_EQ(where("g-3"), kNoRoom);
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
  release("filler-a");
  EXPECT_EQ(run("g-3"), "a");
}

TEST_F(GangsTest, AGangOfHigherPriorityGetsWhatIsOnlyHeldForALowerOne) {
  node("a", "r1");
  members(gang("low", 2), 0, 2, 4, 1);
  members(gang("same", 2), 0, 2, 4, 1);
  members(gang("high", 2), 0, 2, 4, 2);
  EXPECT_EQ(where("low-0"), "a");
  EXPECT_EQ(where("same-0"), kNoRoom);
  EXPECT_EQ(where("high-0"), "a");
  EXPECT_EQ(gangs_.figures().yielded, 1U);
  EXPECT_FALSE(gangs_.start_bind("low-0", "a").empty());
  EXPECT_EQ(where("low-1"), kNoRoom);
  EXPECT_EQ(run("high-0"), "a");
}

TEST_F(GangsTest, AGangOfWhichSomebodyIsBoundDoesNotYield) {
  node("a", "r1");
  members(gang("low", 2), 0, 2, 4, 1);
  members(gang("high", 2), 0, 2, 4, 2);
  EXPECT_EQ(run("low-0"), "a");
  EXPECT_EQ(where("high-0"), kNoRoom);
  EXPECT_EQ(run("low-1"), "a");
}

TEST_F(GangsTest, OnlyAsManyGangsYieldAsThereIsNeedFor) {
  node("a", "r1");
  node("b", "r2");
  members(gang("low1", 2), 0, 2, 4, 1);
  members(gang("low2", 2), 0, 2, 4, 1);
  members(gang("high", 2, "rack"), 0, 2, 4, 2);
  const std::string first = where("low1-0");
  const std::string second = where("low2-0");
  EXPECT_NE(first, second);
  EXPECT_EQ(where("high-0"), second);  // whoever came last
  EXPECT_EQ(phase("low1"), GangPhase::kReserved);
  EXPECT_EQ(phase("low2"), GangPhase::kReady);
}

TEST_F(GangsTest, WhoReplacesAMemberGetsItsNode) {
  node("a", "r1");
  node("b", "r1");
  node("c", "r2");
  const GangSpec spec = gang("g", 2, "rack");
  members(spec, 0, 2, 8);
  EXPECT_EQ(run("g-0"), "a");
  EXPECT_EQ(run("g-1"), "b");
  end("g-0");
  EXPECT_EQ(phase("g"), GangPhase::kDegraded);
  members(spec, 2, 3, 8);
  gangs_.tick();  // nobody has asked yet, and another pod may not have it
  EXPECT_EQ(gangs_.place_of("g-2"), cluster_.find_node("a"));
  EXPECT_EQ(run("g-2"), "a");
}

TEST_F(GangsTest, WhereItsNodeIsTakenTheReplacementStaysInTheRack) {
  for (const char* name : {"a", "b", "c"}) node(name, "r1");
  node("d", "r2");
  const GangSpec spec = gang("g", 2, "rack");
  members(spec, 0, 2, 8);
  run("g-0");
  run("g-1");
  const std::string old = bookings_.find("g-0")->node;
  end("g-0");
  hold("other", old, 8);
  members(spec, 2, 3, 8);
  const std::string now = run("g-2");
  EXPECT_NE(now, old);
  EXPECT_NE(now, "d");
  end("g-2");
  hold("another", now, 8);
  members(spec, 3, 4, 8);
  EXPECT_EQ(where("g-3"), kNoRoom);  // d is free, and in another rack
}

// The place that one had before last is nobody's any more once its replacement has got another.
TEST_F(GangsTest, AReplacementOfAReplacementGetsTheLatestNode) {
  for (const char* name : {"a", "b", "c"}) node(name, "r1");
  const GangSpec spec = gang("g", 2, "rack");
  members(spec, 0, 2, 8);
  const std::string first = run("g-0");
  run("g-1");
  end("g-0");
  hold("other", first, 8);
  members(spec, 2, 3, 8);
  const std::string second = run("g-2");
  EXPECT_NE(second, first);
  release("other");
  end("g-2");
  members(spec, 3, 4, 8);
  EXPECT_EQ(run("g-3"), second);  // although `first` is free again, and ranks before it
}

TEST_F(GangsTest, AGangLargerThanAnyRackIsRefusedWithTheArithmetic) {
  node("a", "r1", 0);
  node("b", "r1", 0);
  node("c", "r2", 0);
  members(gang("g", 3, "rack"), 0, 3, 8);
  const GangAnswer answer = ask("g-0");
  EXPECT_EQ(answer.kind, Kind::kNever);
  EXPECT_EQ(answer.reason, "GangNeverFits: needs 3 x 8 GPUs in one rack; the best rack r1 has room for 2");
  EXPECT_EQ(phase("g"), GangPhase::kNeverFits);
  node("d", "r1", 0);
  gangs_.nodes_changed();
  EXPECT_EQ(where("g-0"), kNoRoom);
}

TEST_F(GangsTest, MembersThatHaveSucceededCount) {
  node("a", "r1", 2);
  const GangSpec spec = gang("g", 2);
  members(spec, 0, 2, 1);
  run("g-0");
  run("g-1");
  gangs_.succeeded("g-0");
  bookings_.ended("g-0");
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
  gangs_.gone("g-0");  // its object, later
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
  gangs_.succeeded("g-1");
  bookings_.ended("g-1");
  EXPECT_EQ(phase("g"), GangPhase::kFinished);
  gangs_.gone("g-1");
  EXPECT_TRUE(gangs_.gangs().empty());
}

TEST_F(GangsTest, WhenMembersAreDeletedBeforeAnyIsBoundThePlacesAreFreeAtOnce) {
  node("a", "r1");
  members(gang("g", 3), 0, 3, 2);
  EXPECT_EQ(where("g-0"), "a");
  end("g-2");
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(phase("g"), GangPhase::kIncomplete);
}

TEST_F(GangsTest, WhenTheGroupObjectIsDeletedPlacesAreFreeAndRunningMembersStay) {
  node("a", "r1");
  members(gang("g", 2), 0, 2, 2);
  EXPECT_EQ(run("g-0"), "a");
  GangSpec without = gang("g", 0);
  without.waits_for = "waits for its group object";
  gangs_.respecify(without);
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(bookings_.find("g-0")->stage, Booking::Stage::kBound);
}

// kueue#534: a large gang must get its turn though smaller pods would take all that becomes free. Sizes mine.
TEST_F(GangsTest, ForAGangThatHasWaitedLongNodesAreKept) {
  node("a", "r1", 0);
  node("b", "r1", 0);
  node("c", "r2", 0);
  members(gang("big", 2, "rack"), 0, 2, 8);
  members(gang("small", 2), 0, 2, 4);
  EXPECT_EQ(where("big-0"), kNoRoom);
  clock_.advance(120 * kSecond);
  gangs_.tick();
  EXPECT_EQ(gangs_.kept_for(), "big");
  release("filler-a");
  EXPECT_EQ(where("small-0"), kNoRoom);
  EXPECT_TRUE(gangs_.kept_from(*cluster_.find_node("a"), "single", 0));
  EXPECT_FALSE(gangs_.kept_from(*cluster_.find_node("a"), "single", 1));  // of higher priority
  EXPECT_FALSE(gangs_.kept_from(*cluster_.find_node("c"), "single", 0));
  release("filler-b");
  EXPECT_EQ(run("big-0"), "a");
  EXPECT_EQ(gangs_.kept_for(), "");
}

TEST_F(GangsTest, NodesAreKeptForHalfAnHourAndThenForTheNext) {
  node("a", "r1", 0);
  node("b", "r2", 0);
  members(gang("one", 1), 0, 1, 8);
  members(gang("two", 1), 0, 1, 8);
  EXPECT_EQ(where("one-0"), kNoRoom);
  EXPECT_EQ(where("two-0"), kNoRoom);
  clock_.advance(120 * kSecond);
  gangs_.tick();
  EXPECT_EQ(gangs_.kept_for(), "one");
  clock_.advance(1800 * kSecond);
  gangs_.tick();
  EXPECT_EQ(gangs_.kept_for(), "two");
}

TEST_F(GangsTest, ANodeThatKubeSchedulerRefusesAgainAndAgainIsSetAside) {
  node("a", "r1");
  node("b", "r1");
  members(gang("g", 1), 0, 1, 8);
  EXPECT_EQ(where("g-0"), "a");
  EXPECT_EQ(where("g-0"), "a");
  const GangAnswer third = ask("g-0");
  EXPECT_TRUE(third.refused);
  EXPECT_EQ(cluster_.node_name(third.node), "b");
}

TEST_F(GangsTest, AQuestionAboutOneNodeDisturbsNoPlace) {
  node("a", "r1");
  node("b", "r1");
  members(gang("g", 2), 0, 2, 4);
  EXPECT_EQ(where("g-0"), "a");
  const NodeId other = *cluster_.find_node("b");
  EXPECT_EQ(gangs_.ask("g-0", {&other, 1}).kind, Kind::kWait);
  EXPECT_EQ(where("g-0"), "a");
}

TEST_F(GangsTest, MembersOfSeveralKindsAreAskedAboutBeforeAnythingIsPlanned) {
  node("a", "r1");
  GangSpec spec = gang("g", 2);
  spec.roles = {{"master", 1}};
  gangs_.see(spec, {request("m", 0, 0), "master", ""});
  gangs_.see(spec, {request("w", 8, 0), "worker", ""});
  EXPECT_TRUE(where("w").starts_with("GangGathers"));
  EXPECT_EQ(woken(), (std::vector<std::string>{"m"}));
  EXPECT_EQ(run("m"), "a");
  EXPECT_EQ(woken(), (std::vector<std::string>{"w"}));
  EXPECT_EQ(run("w"), "a");
}

TEST_F(GangsTest, MembersOfDifferentPriorityAreRefusedUnlessTheGroupHasOne) {
  node("a", "r1");
  GangSpec spec = gang("g", 2);
  members(spec, 0, 1, 1, 1);
  members(spec, 1, 2, 1, 5);
  EXPECT_EQ(where("g-0"),
            "GangInvalid: members of one gang have priorities 1 and 5; give them one, or their group a priority class");
  spec.priority = 3;
  gangs_.respecify(spec);
  EXPECT_EQ(where("g-0"), "a");
}

}  // namespace
}  // namespace mortise::extender
