// With --scheduler-name, pods of other schedulers are none of our business, but what they hold is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/extender/handlers.h"
#include "scheduler/extender/question.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::ElementsAre;

const std::vector<std::string_view> kBig = {"big-a", "big-b"};

PodQuestion of(const std::string& scheduler, const std::string& uid, std::int32_t gpus) {
  PodQuestion question = ask(uid, gpus, kBig);
  question.scheduler = scheduler;
  return question;
}

class SchedulerName : public testing::Test {
 protected:
  SchedulerName() { cluster_.handlers().decide_only_for({"mortise", "canary"}); }

  std::vector<std::string> passed(const PodQuestion& question) {
    return with_verdict(cluster_.handlers().filter(question).result, Verdict::kPassed);
  }

  TestCluster cluster_{"first-fit", 60 * kSecond};
};

TEST_F(SchedulerName, OnlyPodsOfTheNamedOnesAreDecidedFor) {
  EXPECT_THAT(passed(of("mortise", "u1", 1)), ElementsAre("big-a"));
  EXPECT_THAT(passed(of("canary", "u2", 1)), ElementsAre("big-a"));
  EXPECT_THAT(passed(of("volcano", "u3", 1)), ElementsAre("big-a", "big-b"));
  EXPECT_THAT(passed(of("", "u4", 1)), ElementsAre("big-a", "big-b"));  // the API server's default: default-scheduler
  EXPECT_EQ(cluster_.handlers().filter(of("volcano", "u3", 1)).outcome, Outcome::kUnmanaged);
}

TEST_F(SchedulerName, WithoutTheFlagAllAre) {
  cluster_.handlers().decide_only_for({});
  EXPECT_THAT(passed(of("volcano", "u1", 1)), ElementsAre("big-a"));
}

TEST_F(SchedulerName, AnotherSchedulersPodPassesWhateverIsWrongWithItAndHoldsNoPlace) {
  PodQuestion odd = of("volcano", "u1", 99);
  odd.invalid = "InvalidRequest: not for us to say";
  EXPECT_THAT(passed(odd), ElementsAre("big-a", "big-b"));
  EXPECT_EQ(cluster_.bookings().reserved(), 0U);
  for (const HostPriority& priority : cluster_.handlers().prioritize(of("volcano", "u2", 1))) {
    EXPECT_EQ(priority.score, 0);
  }
}

TEST_F(SchedulerName, ItIsBoundWithoutDevicesOnWhateverNodeAndThenCounts) {
  cluster_.hold("holder", "big-b", 8, 0);
  (void)passed(of("volcano", "u1", 4));
  const Handlers::BindStart full = cluster_.handlers().start_bind({"pod-u1", "default", "u1", "big-b"});
  EXPECT_EQ(full.error, "");  // kube-scheduler counts for itself, and kubelet has the last word
  EXPECT_TRUE(full.devices.empty());
  cluster_.handlers().finish_bind(full, "big-b", BindResult::State::kNotBound);
  const Handlers::BindStart free = cluster_.handlers().start_bind({"pod-u1", "default", "u1", "big-a"});
  EXPECT_EQ(free.error, "");
  EXPECT_TRUE(free.devices.empty());
  cluster_.handlers().finish_bind(free, "big-a", BindResult::State::kBound);
  EXPECT_EQ(cluster_.free_gpus("big-a"), 4);
}

// The extender was started anew, or another one led, when filter was asked.
TEST_F(SchedulerName, SoItIsWhenOnlyTheApiServerTellsOfThePod) {
  const WaitingPod theirs{ask("u1", 4, {}).pod, "volcano"};
  Handlers handlers(cluster_.engine(), cluster_.bookings(), cluster_.clock(), 60 * kSecond,
                    [&](std::string_view uid) { return uid == "u1" ? &theirs : nullptr; });
  handlers.decide_only_for({"mortise"});
  const Handlers::BindStart start = handlers.start_bind({"pod-u1", "default", "u1", "big-a"});
  EXPECT_EQ(start.error, "");
  EXPECT_TRUE(start.devices.empty());
  EXPECT_EQ(cluster_.bookings().find("u1"), nullptr);
}

TEST_F(SchedulerName, ItsVictimsStayAsProposed) {
  cluster_.hold("v1", "big-a", 4, 0);
  cluster_.hold("v2", "big-a", 4, 0);
  // Eight GPUs need both victims; kube-scheduler's proposal of one is passed on as it is.
  PreemptionQuestion question{of("volcano", "u1", 8), {}};
  question.pod.pod.priority = 1000;
  question.args.candidates = {{"big-a", {{"v1", {}}}, 0}};
  const std::vector<NodeVictims> nodes = cluster_.handlers().preempt(question);
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_THAT(nodes[0].uids, ElementsAre("v1"));
}

TEST(SchedulerNameOnTheWire, IsReadFromThePod) {
  std::string body = R"({"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{"schedulerName":"mortise","containers":[]}},)"
                     R"("NodeNames":["n"]})";
  const Result<PodQuestion> question = read_question(body);
  ASSERT_TRUE(question.ok());
  EXPECT_EQ(question->scheduler, "mortise");
}

}  // namespace
}  // namespace mortise::extender
