// Members of a native pod group are asked about in trials, which kube-scheduler repeats and reverts without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/extender/group_trials.h"
#include "scheduler/extender/handlers.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Names = std::vector<std::string_view>;
const Names kBig = {"big-a", "big-b"};
constexpr Nanoseconds kReserved = 120 * kSecond;

PodQuestion member(const std::string& uid, std::int32_t gpus, const Names& nodes,
                   const std::string& group = "default/g") {
  PodQuestion question = ask(uid, gpus, nodes);
  question.group = group;
  return question;
}

BindingArgs to(const std::string& uid, const std::string& node) {
  return {"pod-" + uid, "default", uid, node};
}

class GroupTrial : public testing::Test {
 protected:
  std::vector<std::string> passed(const PodQuestion& question) {
    const FilterAnswer answer = cluster.handlers().filter(question);
    EXPECT_TRUE(cluster.cluster().check().ok());
    EXPECT_FALSE(answer.refused);
    return with_verdict(answer.result, Verdict::kPassed);
  }
  std::vector<int> bound_devices(const std::string& uid, const std::string& node) {
    const Handlers::BindStart start = cluster.handlers().start_bind(to(uid, node));
    EXPECT_EQ(start.error, "");
    cluster.handlers().finish_bind(start, node, BindResult::State::kBound);
    std::vector<int> devices;
    for (int device = 0; device < 8; ++device) {
      if (start.devices.contains(device)) devices.push_back(device);
    }
    return devices;
  }

  TestCluster cluster{"first-fit", kReserved};
};

TEST_F(GroupTrial, AMemberDoesNotGetThePlaceOfOneAskedAboutBefore) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-b"));
  EXPECT_THAT(passed(member("m3", 8, kBig)), IsEmpty());
}

TEST_F(GroupTrial, SharesOfOneGpuAreNotGivenTwiceEither) {
  for (const auto& [uid, fits] : {std::pair{"m1", true}, {"m2", true}, {"m3", false}}) {
    PodQuestion question = member(uid, 1, {"small", "plain"});
    question.pod.gpu_milli = 600;
    EXPECT_EQ(!passed(question).empty(), fits) << uid;  // 600 and 600 of 1000 are two GPUs, and there are two
  }
}

TEST_F(GroupTrial, ARepeatedTrialGetsTheSameAnswersAndSetsNothingAside) {
  for (int trial = 0; trial < 6; ++trial) {
    EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a")) << trial;
    EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-b")) << trial;
    EXPECT_THAT(passed(member("m3", 8, kBig)), IsEmpty()) << trial;
    cluster.clock().advance(kSecond);
  }
}

TEST_F(GroupTrial, EachCandidatePlacementIsATrialOfItsOwn) {
  for (const std::string_view node : {"big-a", "big-b", "big-a"}) {
    EXPECT_THAT(passed(member("m1", 4, {node})), ElementsAre(node));
    EXPECT_THAT(passed(member("m2", 4, {node})), ElementsAre(node));
    EXPECT_THAT(passed(member("m3", 4, {node})), IsEmpty());
  }
}

TEST_F(GroupTrial, ANominatedNodeThatDoesNotPassIsPartOfTheTrial) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m2", 8, {"big-a"})), IsEmpty());
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-b"));  // big-a is still m1's
  EXPECT_THAT(passed(member("m3", 8, kBig)), IsEmpty());
}

TEST_F(GroupTrial, AMemberThatFailedBeginsATrialWhenItIsAskedAboutAgain) {
  EXPECT_THAT(passed(member("m1", 8, {"big-a", "plain"})), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m2", 8, {"big-a", "plain"})), IsEmpty());
  EXPECT_THAT(passed(member("m2", 8, {"big-a", "plain"})), ElementsAre("big-a"));  // m1's answer is of the trial before
}

TEST_F(GroupTrial, NothingIsReservedAgainstOthers) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  EXPECT_EQ(cluster.bookings().size(), 0U);
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
  EXPECT_THAT(passed(member("n1", 8, kBig, "default/h")), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("n2", 8, kBig, "other/g")), ElementsAre("big-a"));
  EXPECT_THAT(passed(ask("single", 8, kBig)), ElementsAre("big-a"));
  // Bind decides: the single pod holds the place.
  EXPECT_THAT(cluster.handlers().bind(to("m1", "big-a")), HasSubstr("does not fit on node big-a: InsufficientGpu"));
  EXPECT_EQ(cluster.bookings().find("m1"), nullptr);
  EXPECT_EQ(cluster.handlers().bind(to("single", "big-a")), "");
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-b"));  // and the next trial sees it
}

TEST_F(GroupTrial, AReservedPlaceOfAnotherPodIsNotOffered) {
  EXPECT_THAT(passed(ask("single", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-b"));
  EXPECT_THAT(passed(member("m2", 8, kBig)), IsEmpty());
}

TEST_F(GroupTrial, AnswersEndAfterThirtySeconds) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  cluster.clock().advance(GroupTrials::kEndsAfter - 1);
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-b"));
  cluster.clock().advance(1);
  EXPECT_THAT(passed(member("m3", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m4", 8, kBig)), IsEmpty());
}

// The plan is GPUs 0 and 1; they are bound to another pod meanwhile, so it takes the next two.
TEST_F(GroupTrial, BindTakesOtherDevicesOfTheNodeWhenThePlannedOnesAreGone) {
  EXPECT_THAT(passed(member("m1", 2, kBig)), ElementsAre("big-a"));
  cluster.hold("other", "big-a", 2, 0);
  EXPECT_THAT(bound_devices("m1", "big-a"), ElementsAre(2, 3));
}

TEST_F(GroupTrial, WinnersOfAnEarlierPlacementAreBoundWithoutOverlap) {
  for (const std::string_view node : {"big-a", "big-b"}) {
    EXPECT_THAT(passed(member("m1", 4, {node})), ElementsAre(node));
    EXPECT_THAT(passed(member("m2", 4, {node})), ElementsAre(node));
  }
  EXPECT_THAT(bound_devices("m2", "big-a"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(bound_devices("m1", "big-a"), ElementsAre(4, 5, 6, 7));
}

TEST_F(GroupTrial, ABoundMemberCountsOnce) {
  EXPECT_THAT(passed(member("m1", 4, kBig)), ElementsAre("big-a"));
  EXPECT_EQ(cluster.handlers().bind(to("m1", "big-a")), "");
  EXPECT_THAT(passed(member("m2", 4, kBig)), ElementsAre("big-a"));
  // One that kube-scheduler has bound itself, so that only the watch told.
  PodQuestion seen = member("m2", 4, kBig);
  cluster.bookings().bound(seen.pod, "big-a", {});
  EXPECT_THAT(passed(member("m3", 8, kBig)), ElementsAre("big-b"));
  EXPECT_EQ(cluster.free_gpus("big-a"), 0);
}

TEST_F(GroupTrial, ABindingThatFailedLeavesNothing) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  const Handlers::BindStart start = cluster.handlers().start_bind(to("m1", "big-a"));
  cluster.handlers().finish_bind(start, "big-a", BindResult::State::kNotBound);
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-a"));
}

TEST_F(GroupTrial, AdvisoryAnswersCountWhenOnlyOneNodePasses) {
  for (const char* uid : {"m1", "m2"}) {
    PodQuestion question = member(uid, 8, kBig);
    question.decisive = false;
    EXPECT_THAT(passed(question), ElementsAre("big-a", "big-b")) << uid;  // which one is taken is not told
  }
  PodQuestion one = member("m3", 8, {"big-a", "plain"});
  one.decisive = false;
  EXPECT_THAT(passed(one), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m4", 8, {"big-a", "plain"})), IsEmpty());
}

TEST_F(GroupTrial, PrioritizeSeesTheTrialToo) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-b"));
  const auto scores = cluster.handlers().prioritize(member("m2", 8, kBig));
  EXPECT_EQ(scores[0].score, 0);
  EXPECT_EQ(scores[1].score, 10);
}

// big-a is m1's in this trial, so m2 needs the pod on big-b to go.
TEST_F(GroupTrial, PreemptSeesTheTrialToo) {
  cluster.hold("low", "big-b", 8, 0);
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m2", 8, kBig)), IsEmpty());
  PreemptionQuestion question;
  question.pod = member("m2", 8, {});
  question.pod.pod.priority = 10;
  question.args.candidates = {{"big-a", {}, 0}, {"big-b", {{"low", std::nullopt}}, 0}};
  const auto answer = cluster.handlers().preempt(question);
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0].node, "big-b");
  EXPECT_THAT(answer[0].uids, ElementsAre("low"));
}

// 8 and 2 GPUs are free: five of six members of 2 GPUs fit. That holds up nobody: four others of 2 GPUs are placed and
// bound, and then one of the first group's fits.
TEST_F(GroupTrial, AGangThatDoesNotFitLeavesRoomForOneThatDoes) {
  cluster.occupy("big-b", 6);
  const auto fitting = [&](const std::string& group, int members) {
    int found = 0;
    for (int i = 0; i < members; ++i) {
      found += passed(member(group + std::to_string(i), 2, kBig, "default/" + group)).empty() ? 0 : 1;
    }
    return found;
  };
  EXPECT_EQ(fitting("large", 6), 5);
  EXPECT_EQ(fitting("small", 4), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cluster.handlers().bind(to("small" + std::to_string(i), "big-a")), "");
  EXPECT_EQ(fitting("large", 6), 1);
}

// m1 is deleted between two trials; nobody tells, and the others get its place.
TEST_F(GroupTrial, AMemberThatIsGoneHoldsNothingInTheNextTrial) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-b"));
  EXPECT_THAT(passed(member("m3", 8, kBig)), IsEmpty());
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-a"));
  EXPECT_THAT(passed(member("m3", 8, kBig)), ElementsAre("big-b"));
}

TEST_F(GroupTrial, APlaceOnANodeThatIsGoneIsForgotten) {
  EXPECT_THAT(passed(member("m1", 8, kBig)), ElementsAre("big-a"));
  cluster.remove("big-a");
  EXPECT_THAT(passed(member("m2", 8, kBig)), ElementsAre("big-b"));
}

TEST(GroupTrials, TheGroupThatAskedLeastRecentlyIsForgottenFirst) {
  GroupTrials trials(2);
  const auto tell = [&](const std::string& group, const std::string& uid, Nanoseconds now) {
    placement::PodRequest pod;
    pod.uid = uid;
    trials.tell(group, {pod, std::nullopt, now, false});
  };
  tell("a", "a1", 1);
  tell("b", "b1", 2);
  tell("c", "c1", 3);
  EXPECT_EQ(trials.others("a", "x", 3).size(), 0U);
  EXPECT_EQ(trials.others("b", "x", 3).size(), 1U);
  tell("c", "c2", 4);
  tell("c", "c3", 5);  // a group may not have more either
  EXPECT_EQ(trials.others("c", "x", 5).size(), 2U);
  EXPECT_EQ(trials.size(), 2U);
}

TEST(GroupTrials, TheGroupIsReadFromThePod) {
  const auto group_of = [](const std::string& ns, const std::string& scheduling_group) {
    std::string body = R"({"Pod":{"metadata":{"name":"p","uid":"u")" + ns + R"(},"spec":{"containers":[])" +
                       scheduling_group + R"(}},"NodeNames":[]})";
    const Result<PodQuestion> question = read_question(body);
    return question.ok() ? question->group : question.message();
  };
  const std::string named = R"(,"schedulingGroup":{"podGroupName":"g"})";
  EXPECT_EQ(group_of(R"(,"namespace":"ml")", named), "ml/g");
  EXPECT_EQ(group_of("", named), "default/g");
  EXPECT_EQ(group_of("", ""), "");
  EXPECT_EQ(group_of("", R"(,"schedulingGroup":null)"), "");
  EXPECT_EQ(group_of("", R"(,"schedulingGroup":{})"), "");
  EXPECT_THAT(group_of("", R"(,"schedulingGroup":{"podGroupName":7})"), HasSubstr("podGroupName"));
}

}  // namespace
}  // namespace mortise::extender
