// One Binding at the API server, whatever the network and the server make of it.
#include "scheduler/extender/binder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "scheduler/extender/leadership.h"
#include "tests/unit/kube_client/test_client.h"

namespace mortise::extender {
namespace {

using State = BindResult::State;
using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kPost = "POST /api/v1/namespaces/ml/pods/train/binding";
constexpr const char* kGet = "GET /api/v1/namespaces/ml/pods/train";

/// Does not wait.
class NoWaiter final : public kube::Waiter {
 public:
  void wait(Nanoseconds, const std::stop_token&) override {}
};

std::string pod_json(const std::string& uid, const std::string& node) {
  return R"({"kind":"Pod","metadata":{"namespace":"ml","name":"train","uid":")" + uid + R"("},"spec":{"nodeName":")" +
         node + R"("}})";
}

/// A server that answers Bindings with statuses in turn (0: no answer), the last one again and again, and reads with
/// one pod (empty: 404).
class BinderTest : public testing::Test {
 protected:
  BindResult bind(std::vector<int> statuses, std::string pod, ApiBinder::WhyNot why_not = {}) {
    statuses_ = std::move(statuses);
    pod_ = std::move(pod);
    ApiBinder binder(*client_, waiter_, stop_.get_token(), std::move(why_not));
    return binder.bind({"ml", "train", "u1", "n1", {{"mortise.dev/assigned-devices", "{}"}}});
  }

  void answer(const FakeRequest& request, FakeExchange& exchange) {
    const std::lock_guard lock(mutex_);
    if (request.method == "GET") {
      if (pod_.empty()) return exchange.respond_status(404, "NotFound", "no such pod");
      if (pod_ == "drop") return exchange.drop();
      return exchange.respond(200, pod_);
    }
    const int status = statuses_.front();
    if (statuses_.size() > 1) statuses_.erase(statuses_.begin());
    if (status == 0) return exchange.drop();
    if (status == 201) return exchange.respond(201, R"({"kind":"Status","status":"Success"})");
    exchange.respond_status(status, "Odd", "odd");
  }

  std::mutex mutex_;
  std::vector<int> statuses_;
  std::string pod_;
  NoWaiter waiter_;
  std::stop_source stop_;
  FakeApiServer server_{[this](const FakeRequest& request, FakeExchange& exchange) { answer(request, exchange); }};
  std::unique_ptr<kube::ApiClient> client_ = test::make_client(server_);
};

TEST_F(BinderTest, OneBindingIsEnough) {
  EXPECT_EQ(bind({201}, "").state, State::kBound);
  EXPECT_THAT(server_.asked(), ElementsAre(kPost));
}

TEST_F(BinderTest, ItIsBusyFromBeforeItAsksWhetherItMaySendUntilItIsDone) {
  ApiBinder* asked = nullptr;
  bool was_busy = false;
  ApiBinder binder(*client_, waiter_, stop_.get_token(), [&] {
    was_busy = asked->busy();
    return "another leads";
  });
  asked = &binder;
  EXPECT_FALSE(binder.busy());
  EXPECT_EQ(binder.bind({"ml", "train", "u1", "n1", {}}).state, State::kNotBound);
  EXPECT_TRUE(was_busy);
  EXPECT_FALSE(binder.busy());
}

TEST_F(BinderTest, AConflictOfAPodThatIsOnTheNodeIsASuccess) {
  EXPECT_EQ(bind({409}, pod_json("u1", "n1")).state, State::kBound);
  EXPECT_THAT(server_.asked(), ElementsAre(kPost, kGet));
}

TEST_F(BinderTest, AConflictOfAPodElsewhereOrReplacedOrHeldBackIsNone) {
  BindResult result = bind({409}, pod_json("u1", "n2"));
  EXPECT_EQ(result.state, State::kNotBound);
  EXPECT_THAT(result.error, HasSubstr("bound to node n2"));
  result = bind({409}, pod_json("u2", "n1"));
  EXPECT_EQ(result.state, State::kNotBound);
  EXPECT_THAT(result.error, HasSubstr("replaced by one with UID u2"));
  EXPECT_EQ(bind({409}, pod_json("u1", "")).state, State::kNotBound);
  EXPECT_EQ(bind({409}, "").state, State::kNotBound);
}

TEST_F(BinderTest, AnAnswerThatLeavesItOpenIsSettledByThePod) {
  EXPECT_EQ(bind({504}, pod_json("u1", "n1")).state, State::kBound);
  EXPECT_THAT(server_.asked(), ElementsAre(kPost, kGet));
}

TEST_F(BinderTest, ALostBindingIsSentAgain) {
  EXPECT_EQ(bind({0, 504, 201}, pod_json("u1", "")).state, State::kBound);
  EXPECT_THAT(server_.asked(), ElementsAre(kPost, kGet, kPost, kGet, kPost));
}

TEST_F(BinderTest, WhenNobodyCanBeAskedThePlaceIsKept) {
  EXPECT_EQ(bind({504}, "drop").state, State::kUnknown);
  // A lost Binding may still arrive, even if the pod is not bound yet.
  EXPECT_EQ(bind({504}, pod_json("u1", "")).state, State::kUnknown);
}

TEST_F(BinderTest, WhatIsRefusedIsNotTriedAgain) {
  for (const int status : {403, 404, 422}) EXPECT_EQ(bind({status}, pod_json("u1", "")).state, State::kNotBound);
  EXPECT_THAT(server_.asked(), SizeIs(3));
}

TEST_F(BinderTest, ARefusalSaysNothingOfABindingThatWasLostBefore) {
  EXPECT_EQ(bind({504, 403}, pod_json("u1", "")).state, State::kUnknown);
}

TEST_F(BinderTest, AServerThatIsBusyIsAskedAgainAndThenGivenUp) {
  EXPECT_EQ(bind({429, 201}, "").state, State::kBound);
  const BindResult result = bind({429}, "");
  EXPECT_EQ(result.state, State::kNotBound);  // it said each time that it did nothing
  EXPECT_THAT(server_.asked(), SizeIs(2 + ApiBinder::kMaxAttempts));
}

TEST_F(BinderTest, WhoDoesNotLeadSendsNothing) {
  const BindResult result = bind({201}, "", [] { return "other leads"; });
  EXPECT_EQ(result.state, State::kNotBound);
  EXPECT_EQ(result.error, "not the leader: other leads");
  EXPECT_THAT(server_.asked(), testing::IsEmpty());
}

TEST_F(BinderTest, WhoseTimeIsOverWhenABindingIsAboutToLeaveSendsNothing) {
  pod_ = pod_json("u1", "");
  ASSERT_TRUE(client_->get("/api/v1/namespaces/ml/pods/train").ok());  // leaves a connection that takes bytes at once
  ApiBinder binder(*client_, waiter_, stop_.get_token(), {}, [] { return Nanoseconds{0}; });
  const BindResult result = binder.bind({"ml", "train", "u1", "n1", {}});
  EXPECT_EQ(result.state, State::kNotBound);
  EXPECT_THAT(result.error, HasSubstr("timed out"));
  EXPECT_THAT(server_.asked(), ElementsAre(kGet));
}

TEST(ApiLeaseStore, AServerThatFallsSilentIsNotWaitedForUntilTheLeaseIsLost) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) { exchange.wait_for_client_to_close(); });
  const std::unique_ptr<kube::ApiClient> client = test::make_client(server);
  ApiLeaseStore store(*client, "ns", "lease", kSecond / 2);
  EXPECT_THAT(store.read().detail, HasSubstr("timed out"));
}

}  // namespace
}  // namespace mortise::extender
