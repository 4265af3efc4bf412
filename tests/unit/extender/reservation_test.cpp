// A decisive answer holds its place until it is bound, asked about again, or too old.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/extender/handlers.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string_view> kBig = {"big-a", "big-b"};
constexpr Nanoseconds kHeld = 60 * kSecond;

std::vector<std::string> passed(TestCluster& cluster, const std::string& uid, int gpus,
                                const std::vector<std::string_view>& nodes = kBig) {
  return with_verdict(cluster.handlers().filter(ask(uid, gpus, nodes)).result, Verdict::kPassed);
}

BindingArgs to(const std::string& uid, const std::string& node) {
  return {"pod-" + uid, "default", uid, node};
}

TEST(Reservation, ASecondPodDoesNotGetThePlaceOfOneThatIsNotBoundYet) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  EXPECT_THAT(passed(cluster, "u2", 8), ElementsAre("big-b"));
  EXPECT_THAT(passed(cluster, "u3", 8), IsEmpty());
  EXPECT_EQ(cluster.bookings().reserved(), 2U);
}

TEST(Reservation, FiftyPodsForOneGpuGetItOnce) {
  TestCluster cluster("first-fit", kHeld);
  cluster.occupy("small", 1);
  int winners = 0;
  for (int i = 0; i < 50; ++i) {
    winners += passed(cluster, "u" + std::to_string(i), 1, {"small", "plain"}).empty() ? 0 : 1;
  }
  EXPECT_EQ(winners, 1);
}

TEST(Reservation, AskingAgainReplacesIt) {
  TestCluster cluster("first-fit", kHeld);
  for (int i = 0; i < 2; ++i) EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  EXPECT_EQ(cluster.bookings().reserved(), 1U);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-b"));  // the third time its node is set aside
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
  EXPECT_EQ(cluster.free_gpus("big-b"), 0);
}

TEST(Reservation, AQuestionAboutOneNodeLeavesItAndIsNotHinderedByIt) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  EXPECT_THAT(passed(cluster, "u1", 8, {"big-a"}), ElementsAre("big-a"));
  EXPECT_THAT(passed(cluster, "u1", 8, {"big-b"}), ElementsAre("big-b"));
  EXPECT_EQ(cluster.free_gpus("big-a"), 0);
  EXPECT_EQ(cluster.free_gpus("big-b"), 8);
}

TEST(Reservation, AQuestionWithoutCandidatesLeavesIt) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  EXPECT_THAT(passed(cluster, "u1", 8, {}), IsEmpty());
  EXPECT_EQ(cluster.bookings().reserved(), 1U);
  EXPECT_EQ(cluster.free_gpus("big-a"), 0);
}

TEST(Reservation, ItExpires) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  cluster.clock().advance(kHeld);
  EXPECT_THAT(passed(cluster, "u2", 8), ElementsAre("big-a"));
  // The first one comes late: its place is gone, and it is told so.
  EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("does not fit on node big-a: InsufficientGpu"));
}

TEST(Reservation, BindTakesWhatWasReserved) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  EXPECT_EQ(cluster.handlers().bind(to("u1", "big-a")), "");
  EXPECT_EQ(cluster.bookings().reserved(), 0U);
  cluster.clock().advance(2 * kHeld);
  EXPECT_THAT(passed(cluster, "u2", 8), ElementsAre("big-b"));
}

TEST(Reservation, BindOnAnotherNodeMovesIt) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 2), ElementsAre("big-a"));
  EXPECT_EQ(cluster.handlers().bind(to("u1", "big-b")), "");
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
  EXPECT_EQ(cluster.free_gpus("big-b"), 6);
}

TEST(Reservation, ABindThatFailsGivesThePlaceBack) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  const Handlers::BindStart start = cluster.handlers().start_bind(to("u1", "big-a"));
  ASSERT_EQ(start.error, "");
  EXPECT_EQ(start.devices.size(), 8);
  EXPECT_THAT(cluster.handlers().start_bind(to("u1", "big-a")).error, HasSubstr("being bound"));
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));  // on its way
  cluster.handlers().finish_bind(start, "big-a", BindResult::State::kNotBound);
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
}

// The extender was started anew, or another one led, when filter was asked.
TEST(Reservation, APodThatOnlyTheApiServerTellsOfIsBound) {
  TestCluster cluster("first-fit", kHeld);
  const WaitingPod pod{ask("u1", 8, {}).pod, "mortise"};
  Handlers handlers(cluster.engine(), cluster.bookings(), cluster.clock(), kHeld,
                    [&](std::string_view uid) { return uid == "u1" ? &pod : nullptr; });
  const Handlers::BindStart start = handlers.start_bind(to("u1", "big-a"));
  EXPECT_EQ(start.error, "");
  EXPECT_EQ(start.devices.size(), 8);
  handlers.finish_bind(start, "big-a", BindResult::State::kBound);
  EXPECT_EQ(cluster.free_gpus("big-a"), 0);
  EXPECT_THAT(handlers.start_bind(to("u2", "big-b")).error, HasSubstr("is not known"));
}

TEST(Reservation, ANodeThatHasChangedSinceIsLookedAtAgainAtBind) {
  placement::NodeSpec spec{"big-a", 64'000, 256 * 1024 * kMiB, 110, 8, "A100"};
  {
    TestCluster cluster("first-fit", kHeld);
    EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
    spec.gpus_lost = 1;  // one of them has failed
    cluster.change(spec);
    EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("does not fit on node big-a: InsufficientGpu"));
    EXPECT_EQ(cluster.bookings().reserved(), 0U);
  }
  {
    TestCluster cluster("first-fit", kHeld);
    EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
    spec.gpus_lost = 0;
    spec.schedulable = false;
    cluster.change(spec);
    EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("does not fit on node big-a: Cordoned"));
    EXPECT_EQ(cluster.free_gpus("big-a"), 8);
  }
}

TEST(Reservation, ANodeThatTakesThePlaceOfAnotherIsNotTheOneThatWasPlanned) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  cluster.bookings().node_leaves("big-a");
  cluster.remove("big-a");
  cluster.add("last", 8, "A100");  // of the highest rank, so it is answered last
  EXPECT_THAT(passed(cluster, "u1", 8, {"last", "big-b"}), ElementsAre("big-b"));
}

TEST(Reservation, APodThatSomebodyElseBoundThereIsSeenAtBind) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  cluster.bookings().bound(ask("u2", 1, {}).pod, "big-a", {});
  EXPECT_THAT(cluster.handlers().bind(to("u1", "big-a")), HasSubstr("does not fit on node big-a: InsufficientGpu"));
  EXPECT_EQ(cluster.free_gpus("big-a"), 7);
}

TEST(Reservation, ABindingInDoubtOnANodeThatIsGoneMayBeTriedAgain) {
  for (const int gpus : {0, 1}) {
    TestCluster cluster("first-fit", kHeld);
    cluster.handlers().filter(ask("u1", gpus, {"big-a", "big-b"}));
    const Handlers::BindStart start = cluster.handlers().start_bind(to("u1", "big-a"));
    ASSERT_EQ(start.error, "");
    cluster.bookings().node_leaves("big-a");
    cluster.remove("big-a");
    cluster.handlers().finish_bind(start, "big-a", BindResult::State::kUnknown);
    const std::string error = cluster.handlers().start_bind(to("u1", "big-a")).error;
    // Without GPUs there is nothing for us to refuse.
    EXPECT_THAT(error, gpus == 0 ? HasSubstr("") : HasSubstr("node big-a is not known"));
    EXPECT_EQ(error.empty(), gpus == 0);
  }
}

TEST(Reservation, WhereAnApiServerTellsAPodHasNotStartedForBeingBound) {
  TestCluster cluster("first-fit", kHeld);
  const auto none_waits = [](std::string_view) -> const WaitingPod* { return nullptr; };
  Handlers handlers(cluster.engine(), cluster.bookings(), cluster.clock(), kHeld, none_waits);
  handlers.filter(ask("u1", 8, kBig));
  EXPECT_EQ(handlers.bind(to("u1", "big-a")), "");
  EXPECT_EQ(cluster.bookings().find("u1")->stage, Booking::Stage::kBound);
  EXPECT_EQ(cluster.bookings().find("u1")->started, std::nullopt);
}

TEST(Reservation, APodThatEndsBeforeItsBindingIsAnsweredKeepsNothing) {
  TestCluster cluster("first-fit", kHeld);
  EXPECT_THAT(passed(cluster, "u1", 8), ElementsAre("big-a"));
  const Handlers::BindStart start = cluster.handlers().start_bind(to("u1", "big-a"));
  cluster.bookings().bound(start.request, "big-a", {});
  cluster.bookings().ended("u1");
  cluster.handlers().finish_bind(start, "big-a", BindResult::State::kBound);
  EXPECT_EQ(cluster.free_gpus("big-a"), 8);
  EXPECT_EQ(cluster.bookings().find("u1"), nullptr);
}

}  // namespace
}  // namespace mortise::extender
