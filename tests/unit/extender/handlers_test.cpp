#include "scheduler/extender/handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::vector<std::string_view> kAll = {"big-a", "big-b", "small", "plain"};

std::vector<std::string> passed(const FilterAnswer& answer) {
  return with_verdict(answer.result, Verdict::kPassed);
}

TEST(Filter, LetsOnlyTheBestNodeThrough) {
  TestCluster cluster;
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 1, kAll));
  EXPECT_THAT(passed(answer), ElementsAre("big-a"));
  EXPECT_EQ(reason_of(answer.result, "big-b"), "Decisive: another node chosen");
  EXPECT_EQ(reason_of(answer.result, "small"), "Decisive: another node chosen");
  EXPECT_THAT(with_verdict(answer.result, Verdict::kFailed), ElementsAre("big-b", "small"));
  EXPECT_EQ(answer.outcome, Outcome::kPlaced);
}

// Fewer GPUs than asked for, or none at all, is for good; GPUs in use may become free.
TEST(Filter, TellsWhatCouldChangeFromWhatCannot) {
  TestCluster cluster;
  cluster.occupy("big-a", 5);
  cluster.occupy("big-b", 5);
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 4, kAll));
  EXPECT_THAT(passed(answer), IsEmpty());
  EXPECT_THAT(with_verdict(answer.result, Verdict::kFailed), ElementsAre("big-a", "big-b"));
  EXPECT_THAT(with_verdict(answer.result, Verdict::kUnresolvable), ElementsAre("small", "plain"));
  EXPECT_THAT(reason_of(answer.result, "big-a"), StartsWith("InsufficientGpu:"));
  EXPECT_THAT(reason_of(answer.result, "small"), StartsWith("TooFewGpus:"));
  EXPECT_THAT(reason_of(answer.result, "plain"), StartsWith("NoGpu:"));
  EXPECT_EQ(answer.outcome, Outcome::kRejected);
  EXPECT_EQ(answer.main_reason, placement::Reason::kInsufficientGpu);
}

TEST(Filter, AWrongModelIsForGood) {
  TestCluster cluster;
  PodQuestion question = ask("u1", 1, kAll);
  question.pod.models = {"T4"};
  const FilterAnswer answer = cluster.handlers().filter(question);
  EXPECT_THAT(passed(answer), ElementsAre("small"));
  EXPECT_THAT(reason_of(answer.result, "big-a"), StartsWith("GpuModel:"));
  EXPECT_THAT(with_verdict(answer.result, Verdict::kUnresolvable), ElementsAre("big-a", "big-b", "plain"));
}

TEST(Filter, AnImpossibleRequestIsUnresolvableOnEveryNode) {
  TestCluster cluster;
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 64, kAll));
  EXPECT_THAT(with_verdict(answer.result, Verdict::kUnresolvable), ElementsAre("big-a", "big-b", "small", "plain"));
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u2", 8, kAll))), ElementsAre("big-a"));
}

TEST(Filter, AnUnknownNodeMayBecomeKnown) {
  TestCluster cluster;
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 1, {"new", "big-b"}));
  EXPECT_THAT(passed(answer), ElementsAre("big-b"));
  EXPECT_THAT(with_verdict(answer.result, Verdict::kFailed), ElementsAre("new"));
  EXPECT_THAT(reason_of(answer.result, "new"), StartsWith("UnknownNode:"));
}

TEST(Filter, WhenAllNodesAreUnknownThatIsTheReason) {
  TestCluster cluster;
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 1, {"x", "y"}));
  EXPECT_THAT(with_verdict(answer.result, Verdict::kFailed), ElementsAre("x", "y"));
  EXPECT_EQ(answer.main_reason, placement::Reason::kUnknownNode);
}

TEST(Filter, NeverNamesANodeThatWasNotAsked) {
  TestCluster cluster;
  cluster.occupy("big-b", 8);
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 1, {"big-b"}));
  ASSERT_EQ(answer.result.nodes.size(), 1U);
  EXPECT_THAT(reason_of(answer.result, "big-b"), StartsWith("InsufficientGpu:"));
}

TEST(Filter, RepeatedAndEmptyNamesAreAnsweredOnce) {
  TestCluster cluster;
  const FilterAnswer answer =
      cluster.handlers().filter(ask("u1", 1, {"big-b", "", "big-b", "big-a", "x", "", "x", "big-a"}));
  std::vector<std::string> names;
  for (const NodeVerdict& node : answer.result.nodes) names.emplace_back(node.name);
  EXPECT_THAT(names, ElementsAre("big-b", "", "big-a", "x"));
  EXPECT_THAT(passed(answer), ElementsAre("big-a"));
  EXPECT_THAT(reason_of(answer.result, ""), StartsWith("UnknownNode:"));
}

// Names are looked for first where they stood in the question before.
TEST(Filter, AnotherOrderOfTheNamesAndNodesThatLeftChangeNoAnswer) {
  TestCluster cluster;
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u1", 1, kAll))), ElementsAre("big-a"));
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u2", 1, {"plain", "small", "big-b", "big-a"}))),
              ElementsAre("big-a"));
  cluster.remove("big-a");
  const FilterAnswer answer = cluster.handlers().filter(ask("u3", 1, kAll));
  EXPECT_THAT(passed(answer), ElementsAre("big-b"));
  EXPECT_THAT(reason_of(answer.result, "big-a"), StartsWith("UnknownNode:"));
}

TEST(Filter, WithoutCandidatesNothingPassesAndNothingIsWrong) {
  TestCluster cluster;
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 1, {}));
  EXPECT_THAT(answer.result.nodes, IsEmpty());
  EXPECT_EQ(answer.result.error, "");
}

TEST(Filter, APodWithoutGpusPassesEverywhere) {
  TestCluster cluster;
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 0, {"plain", "never-seen", "big-a", ""}));
  EXPECT_THAT(passed(answer), ElementsAre("plain", "never-seen", "big-a"));
  EXPECT_EQ(answer.outcome, Outcome::kUnmanaged);
}

TEST(Filter, AnInvalidRequestIsUnresolvableEverywhereWithOneReason) {
  TestCluster cluster;
  PodQuestion question = ask("u1", 1, {"big-a", "never-seen"});
  question.invalid = "InvalidRequest: no such amount";
  const FilterAnswer answer = cluster.handlers().filter(question);
  EXPECT_THAT(with_verdict(answer.result, Verdict::kUnresolvable), ElementsAre("big-a", "never-seen"));
  EXPECT_EQ(reason_of(answer.result, "never-seen"), "InvalidRequest: no such amount");
  EXPECT_EQ(answer.outcome, Outcome::kInvalid);
}

TEST(Filter, AdvisoryLeavesEveryFeasibleNode) {
  TestCluster cluster;
  PodQuestion question = ask("u1", 1, kAll);
  question.decisive = false;
  EXPECT_THAT(passed(cluster.handlers().filter(question)), ElementsAre("big-a", "big-b", "small"));
}

TEST(Filter, ABoundPodKeepsItsNode) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 1, kAll));
  ASSERT_EQ(cluster.handlers().bind({"pod-u1", "default", "u1", "big-a"}), "");
  const FilterAnswer answer = cluster.handlers().filter(ask("u1", 1, kAll));
  EXPECT_THAT(passed(answer), ElementsAre("big-a"));
  EXPECT_EQ(answer.outcome, Outcome::kBound);
  EXPECT_THAT(reason_of(answer.result, "big-b"), StartsWith("Bound:"));
}

TEST(SetAside, TheSecondAskGetsTheSameNodeAndTheThirdTheNextBest) {
  TestCluster cluster;
  Handlers& handlers = cluster.handlers();
  EXPECT_THAT(passed(handlers.filter(ask("u1", 1, kAll))), ElementsAre("big-a"));
  EXPECT_THAT(passed(handlers.filter(ask("u1", 1, kAll))), ElementsAre("big-a"));
  const FilterAnswer third = handlers.filter(ask("u1", 1, kAll));
  EXPECT_THAT(passed(third), ElementsAre("big-b"));
  EXPECT_TRUE(third.refused);
  EXPECT_EQ(reason_of(third.result, "big-a"), "Decisive: another node chosen");
}

TEST(SetAside, EachNodeIsAnsweredTwiceBeforeItIsTakenForRefused) {
  TestCluster cluster;
  std::vector<std::string> answers;
  for (int i = 0; i < 6; ++i) answers.push_back(passed(cluster.handlers().filter(ask("u1", 1, kAll))).at(0));
  EXPECT_THAT(answers, ElementsAre("big-a", "big-a", "big-b", "big-b", "small", "small"));
}

TEST(SetAside, ConcernsThisPodOnly) {
  TestCluster cluster;
  for (int i = 0; i < 3; ++i) cluster.handlers().filter(ask("u1", 1, kAll));
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u2", 1, kAll))), ElementsAre("big-a"));
}

// Asks 1 and 2: big-a; 3 sets it aside until 60 s. A new pod's worth of asks later the time has run out.
TEST(SetAside, EndsAfterItsTime) {
  TestCluster cluster;
  for (int i = 0; i < 3; ++i) cluster.handlers().filter(ask("u1", 1, kAll));  // now on big-b
  cluster.handlers().filter(ask("u1", 1, kAll));
  cluster.clock().advance(60 * kSecond);
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u1", 1, kAll))), ElementsAre("big-a"));  // big-b set aside
}

// big-a is set aside at 0 (until 60), again at 60 (until 180): at 179 it is still out, at 180 it is back.
TEST(SetAside, TakesTwiceAsLongTheNextTime) {
  TestCluster cluster;
  Handlers& handlers = cluster.handlers();
  const std::vector<std::string_view> two = {"big-a", "big-b"};
  const auto answer = [&] { return passed(handlers.filter(ask("u1", 1, two))).at(0); };
  for (const char* node : {"big-a", "big-a", "big-b", "big-b"}) EXPECT_EQ(answer(), node);
  cluster.clock().advance(60 * kSecond);
  EXPECT_EQ(answer(), "big-a");  // big-b aside until 120
  EXPECT_EQ(answer(), "big-a");
  EXPECT_EQ(answer(), "big-b");  // both aside: big-b (120) ends before big-a (180)
  EXPECT_EQ(answer(), "big-b");
  cluster.clock().advance(119 * kSecond);  // 179: big-b free again, but refused a second time now (until 299)
  EXPECT_EQ(answer(), "big-a");            // both aside: big-a ends first
}

TEST(SetAside, WhenEveryNodeIsSetAsideTheOneThatEndsFirstIsAnswered) {
  TestCluster cluster;
  const std::vector<std::string_view> two = {"big-a", "big-b"};
  const auto answer = [&] { return passed(cluster.handlers().filter(ask("u1", 1, two))).at(0); };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(), "big-a");
  cluster.clock().advance(10 * kSecond);
  EXPECT_EQ(answer(), "big-b");  // big-a aside until 70
  EXPECT_EQ(answer(), "big-b");
  cluster.clock().advance(10 * kSecond);
  EXPECT_EQ(answer(), "big-a");  // big-b aside until 80, big-a ends first
}

TEST(SetAside, ANodeThatNoLongerFitsIsReplannedNotRefused) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 8, kAll));
  cluster.handlers().filter(ask("u1", 8, kAll));
  cluster.occupy("big-a", 1);
  const FilterAnswer third = cluster.handlers().filter(ask("u1", 8, kAll));
  EXPECT_THAT(passed(third), ElementsAre("big-b"));
  EXPECT_FALSE(third.refused);
}

TEST(SetAside, ANodeThatIsNoCandidateIsReplannedNotRefused) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 1, kAll));
  const FilterAnswer second = cluster.handlers().filter(ask("u1", 1, {"big-b", "small"}));
  EXPECT_THAT(passed(second), ElementsAre("big-b"));
  EXPECT_FALSE(second.refused);
}

TEST(SetAside, TheSecondAskStaysEvenIfAnotherNodeBecameBetter) {
  TestCluster cluster("best-fit");  // the node with the least left: small
  cluster.occupy("small", 2);
  cluster.occupy("big-b", 6);
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u1", 1, kAll))), ElementsAre("big-b"));
  cluster.occupy("big-a", 7);  // one GPU left now, fewer than on big-b
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u1", 1, kAll))), ElementsAre("big-b"));
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u2", 1, kAll))), ElementsAre("big-a"));
}

TEST(OneNodeQuestion, IsAnsweredForThatNodeAndIsNoAsk) {
  TestCluster cluster;
  Handlers& handlers = cluster.handlers();
  EXPECT_THAT(passed(handlers.filter(ask("u1", 1, kAll))), ElementsAre("big-a"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(passed(handlers.filter(ask("u1", 1, {"small"}))), ElementsAre("small"));
    EXPECT_THAT(passed(handlers.filter(ask("u1", 1, {"big-a"}))), ElementsAre("big-a"));
    EXPECT_THAT(passed(handlers.filter(ask("u1", 1, {"plain"}))), IsEmpty());
  }
  EXPECT_THAT(passed(handlers.filter(ask("u1", 1, kAll))), ElementsAre("big-a"));  // still the second ask
  EXPECT_THAT(passed(handlers.filter(ask("u1", 1, kAll))), ElementsAre("big-b"));
}

TEST(OneNodeQuestion, MakesThePodKnownToBind) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 1, {"small"}));
  EXPECT_EQ(cluster.handlers().bind({"pod-u1", "default", "u1", "small"}), "");
  EXPECT_EQ(cluster.free_gpus("small"), 1);
}

TEST(Filter, APodWithoutUidIsAnsweredTheSameEveryTime) {
  TestCluster cluster;
  PodQuestion question = ask("", 1, kAll);
  for (int i = 0; i < 5; ++i) EXPECT_THAT(passed(cluster.handlers().filter(question)), ElementsAre("big-a"));
}

std::vector<std::int64_t> scores(const std::vector<HostPriority>& priorities) {
  std::vector<std::int64_t> out;
  for (const HostPriority& entry : priorities) out.push_back(entry.score);
  return out;
}

TEST(Prioritize, DecisiveGivesTheChosenNodeTen) {
  TestCluster cluster;
  EXPECT_THAT(scores(cluster.handlers().prioritize(ask("u1", 1, kAll))), ElementsAre(10, 0, 0, 0));
}

TEST(Prioritize, FollowsTheAnswerThatFilterGave) {
  TestCluster cluster;
  for (int i = 0; i < 3; ++i) cluster.handlers().filter(ask("u1", 1, kAll));  // big-a set aside, big-b answered
  EXPECT_THAT(scores(cluster.handlers().prioritize(ask("u1", 1, kAll))), ElementsAre(0, 10, 0, 0));
}

TEST(Prioritize, IsNoAsk) {
  TestCluster cluster;
  for (int i = 0; i < 5; ++i) cluster.handlers().prioritize(ask("u1", 1, kAll));
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u1", 1, kAll))), ElementsAre("big-a"));
  for (int i = 0; i < 5; ++i) cluster.handlers().prioritize(ask("u1", 1, kAll));
  EXPECT_THAT(passed(cluster.handlers().filter(ask("u1", 1, kAll))), ElementsAre("big-a"));
}

// best-fit prefers the node with the least left. For one GPU of each (CPU all alike): small (2 free) before big-b (4)
// before big-a (8); plain does not fit.
TEST(Prioritize, AdvisoryOrdersTheFeasibleNodesAsThePolicyDoes) {
  TestCluster cluster("best-fit");
  cluster.occupy("big-b", 4);
  PodQuestion question = ask("u1", 1, {"big-a", "big-b", "small", "plain", "unknown"});
  question.decisive = false;
  const auto got = scores(cluster.handlers().prioritize(question));
  EXPECT_EQ(got[2], 10);
  EXPECT_LT(got[1], got[2]);
  EXPECT_LT(got[0], got[1]);
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[3], 0);
  EXPECT_EQ(got[4], 0);
}

TEST(Prioritize, AdvisoryPutsThePolicysTieBreakOnTop) {
  TestCluster cluster;  // first-fit scores every node alike and takes the lowest rank
  PodQuestion question = ask("u1", 1, {"small", "big-b", "big-a"});
  question.decisive = false;
  EXPECT_THAT(scores(cluster.handlers().prioritize(question)), ElementsAre(9, 9, 10));
}

TEST(Prioritize, WithoutGpusEveryNodeIsWorthTheSame) {
  TestCluster cluster;
  EXPECT_THAT(scores(cluster.handlers().prioritize(ask("u1", 0, kAll))), ElementsAre(0, 0, 0, 0));
}

TEST(Prioritize, EachNodeOnce) {
  TestCluster cluster;
  const std::vector<HostPriority> got = cluster.handlers().prioritize(ask("u1", 1, {"big-b", "big-b", "", "x", "x"}));
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].host, "big-b");
  EXPECT_THAT(scores(got), ElementsAre(10, 0, 0));
}

TEST(Prioritize, ABoundPodsNodeIsTheBest) {
  TestCluster cluster;
  cluster.handlers().filter(ask("u1", 1, kAll));
  ASSERT_EQ(cluster.handlers().bind({"pod-u1", "default", "u1", "small"}), "");
  EXPECT_THAT(scores(cluster.handlers().prioritize(ask("u1", 1, kAll))), ElementsAre(0, 0, 10, 0));
}

}  // namespace
}  // namespace mortise::extender
