// Evictions at the API server: who is evicted, when it is tried again, and when nothing is sent.
#include "scheduler/extender/evictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/kube_client/test_client.h"

namespace mortise::extender {
namespace {

using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kPost = "POST /api/v1/namespaces/ml/pods/mate/eviction";

class NoWaiter final : public kube::Waiter {
 public:
  void wait(Nanoseconds, const std::stop_token&) override {}
};

/// `first` and `mate` are of one gang, and kube-scheduler has begun with `first`.
class EvictorTest : public testing::Test {
 protected:
  EvictorTest() {
    (void)cluster_.add_node({"n", 64'000, 256 * 1024 * kMiB, 110, 8, ""}, 0);
    for (const char* name : {"first", "mate"}) {
      placement::PodRequest pod;
      pod.ns = "ml";
      pod.name = name;
      pod.uid = "uid-" + pod.name;
      pod.gpus = 1;
      bookings_.bound(pod, "n", {});
    }
    evictions_.expect("key", "ml/high", {"uid-first"}, {"uid-mate"});
    bookings_.leaves("uid-first");
    evictions_.begun("uid-first");
  }
  bool step() { return evictor_.step(stop_.get_token()); }
  void answer(const FakeRequest& request, FakeExchange& exchange) {
    const std::lock_guard lock(mutex_);
    body_ = request.body;
    if (status_ == 201) return exchange.respond(201, R"({"kind":"Status","status":"Success"})");
    exchange.respond_status(status_, "Odd", "odd");
  }

  std::mutex mutex_;
  int status_ = 201;
  std::string body_;
  std::string why_not_;
  ManualClock clock_;
  placement::ClusterState cluster_;
  Bookings bookings_{cluster_};
  Evictions evictions_{bookings_, clock_};
  NoWaiter waiter_;
  std::stop_source stop_;
  FakeApiServer server_{[this](const FakeRequest& request, FakeExchange& exchange) { answer(request, exchange); }};
  std::unique_ptr<kube::ApiClient> client_ = test::make_client(server_);
  std::mutex guard_;
  Evictor evictor_{evictions_, guard_, *client_, waiter_, [this] { return why_not_; }};
};

TEST_F(EvictorTest, TheRestOfTheGangIsEvictedByItsUid) {
  EXPECT_TRUE(step());
  EXPECT_FALSE(step());
  EXPECT_THAT(server_.asked(), ElementsAre(kPost));
  const nlohmann::json body = nlohmann::json::parse(body_);
  EXPECT_EQ(body["apiVersion"], "policy/v1");
  EXPECT_EQ(body["kind"], "Eviction");
  EXPECT_EQ(body["deleteOptions"]["preconditions"]["uid"], "uid-mate");
  EXPECT_EQ(evictor_.evicted(), 1U);
  const auto news = evictor_.take_news();
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news[0].order.preemptor, "ml/high");
  EXPECT_EQ(news[0].error, "");
}

TEST_F(EvictorTest, WhatABudgetDoesNotAllowIsTriedAgainLaterAndNotForEver) {
  status_ = 429;
  EXPECT_TRUE(step());
  EXPECT_FALSE(step());
  clock_.advance(2 * kSecond);
  EXPECT_TRUE(step());
  EXPECT_EQ(evictor_.failed(), 2U);
  clock_.advance(Evictions::kGiveUp - 3 * kSecond);  // 2 s of it are over
  EXPECT_TRUE(step());
  clock_.advance(2 * kSecond);
  EXPECT_FALSE(step());
}

TEST_F(EvictorTest, WhoIsGoneMeanwhileIsNotEvicted) {
  bookings_.ended("uid-mate");
  EXPECT_FALSE(step());
  EXPECT_THAT(server_.asked(), IsEmpty());
}

TEST_F(EvictorTest, WhoDoesNotLeadSendsNothing) {
  why_not_ = "another leads";
  EXPECT_FALSE(step());
  EXPECT_THAT(server_.asked(), IsEmpty());
  // Whoever led meanwhile has decided anew.
  why_not_.clear();
  EXPECT_FALSE(step());
}

}  // namespace
}  // namespace mortise::extender
