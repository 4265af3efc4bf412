// Plans of gangs as ConfigMaps: written once, whatever the server makes of it, and read again at the start.
#include "scheduler/extender/plan_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/kube_client/test_client.h"

namespace mortise::extender {
namespace {

using kube::Outcome;
using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kPost = "POST /api/v1/namespaces/ml/configmaps";
constexpr const char* kGet = "GET /api/v1/namespaces/ml/configmaps/mortise-gang-1";

class NoWaiter final : public kube::Waiter {
 public:
  void wait(Nanoseconds, const std::stop_token&) override {}
};

PlanMap plan() {
  PlanMap map;
  map.name = {"ml", "mortise-gang-1"};
  map.gang = "0123456789abcdef";
  map.people = "ml/train";
  map.text = "the plan";
  map.owners = {{"batch/v1", "Job", "train", "u-job"}};
  return map;
}

std::string stored(const std::string& text) {
  return R"({"kind":"ConfigMap","metadata":{"namespace":"ml","name":"mortise-gang-1"},"data":{"plan":")" + text +
         R"("}})";
}

/// A server that answers writes with statuses in turn (0: no answer), the last one again and again, and reads with one
/// text (empty: 404).
class PlanStoreTest : public testing::Test {
 protected:
  kube::Done write(std::vector<int> statuses, std::string there = "") {
    statuses_ = std::move(statuses);
    there_ = std::move(there);
    return store_.write(plan());
  }

  void answer(const FakeRequest& request, FakeExchange& exchange) {
    const std::lock_guard lock(mutex_);
    if (request.method == "GET") {
      if (there_.empty()) return exchange.respond_status(404, "NotFound", "no such config map");
      return exchange.respond(200, stored(there_));
    }
    bodies_.push_back(request.body);
    const int status = statuses_.front();
    if (statuses_.size() > 1) statuses_.erase(statuses_.begin());
    if (status == 0) return exchange.drop();
    if (status < 300) return exchange.respond(status, stored("the plan"));
    exchange.respond_status(status, "Odd", "odd");
  }

  std::mutex mutex_;
  std::vector<int> statuses_;
  std::string there_;
  std::vector<std::string> bodies_;
  NoWaiter waiter_;
  std::stop_source stop_;
  FakeApiServer server_{[this](const FakeRequest& request, FakeExchange& exchange) { answer(request, exchange); }};
  std::unique_ptr<kube::ApiClient> client_ = test::make_client(server_);
  ApiPlanStore store_{*client_, waiter_, stop_.get_token()};
};

TEST_F(PlanStoreTest, APlanIsOneConfigMapThatItsGroupOwns) {
  EXPECT_TRUE(write({201}).done());
  EXPECT_THAT(server_.asked(), ElementsAre(kPost));
  const auto sent = nlohmann::json::parse(bodies_.front());
  EXPECT_EQ(sent["data"], (nlohmann::json{{"plan", "the plan"}}));
  EXPECT_EQ(sent["metadata"]["labels"]["mortise.dev/gang-plan"], "0123456789abcdef");
  EXPECT_EQ(sent["metadata"]["ownerReferences"],
            (nlohmann::json{{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "train"}, {"uid", "u-job"}}}));
}

TEST_F(PlanStoreTest, AWriteWhoseAnswerWasLostIsFoundDone) {
  EXPECT_TRUE(write({0, 409}, "the plan").done());
  EXPECT_THAT(server_.asked(), ElementsAre(kPost, kPost, kGet));
}

TEST_F(PlanStoreTest, WhatSomebodyElseWroteThereIsNotOurs) {
  const kube::Done done = write({409}, "another plan");
  EXPECT_EQ(done.outcome, Outcome::kRefused);
  EXPECT_THAT(done.detail, HasSubstr("ConfigMap ml/mortise-gang-1: it exists and holds something else"));
}

TEST_F(PlanStoreTest, ARefusalIsFinalAndSilenceIsNot) {
  EXPECT_EQ(write({403}).outcome, Outcome::kRefused);
  EXPECT_EQ(write({404}).outcome, Outcome::kRefused);  // no such namespace
  EXPECT_EQ(write({0}).outcome, Outcome::kUnknown);
  EXPECT_EQ(write({429}).outcome, Outcome::kLater);
}

TEST_F(PlanStoreTest, APlanIsReadAndTakenAway) {
  statuses_ = {200};
  there_ = "the plan";
  EXPECT_EQ(*store_.read(plan().name).value, "the plan");
  EXPECT_TRUE(store_.remove(plan().name).done());
  there_.clear();
  EXPECT_EQ(store_.read(plan().name).outcome, Outcome::kNotFound);
}

/// Lets each write wait until it is told what comes of it.
class HeldStore final : public PlanStore {
 public:
  kube::Done write(const PlanMap&) override {
    std::unique_lock lock(mutex_);
    ++writes_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return outcome_.has_value(); });
    return {*outcome_, "as told"};
  }
  kube::Answer<std::string> read(const PlanMapName&) override { return {Outcome::kNotFound, ""}; }
  kube::Done remove(const PlanMapName&) override { return {Outcome::kDone, ""}; }

  void wait_for_a_write() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return writes_ > 0; });
  }
  void tell(Outcome outcome) {
    const std::lock_guard lock(mutex_);
    outcome_ = outcome;
    changed_.notify_all();
  }
  int writes() {
    const std::lock_guard lock(mutex_);
    return writes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int writes_ = 0;
  std::optional<Outcome> outcome_;
};

TEST(PlanWriter, BindsOfOnePlanWriteItOnce) {
  HeldStore store;
  PlanWriter writer(store);
  std::atomic<int> done = 0;
  std::vector<std::jthread> binds;
  for (int i = 0; i < 8; ++i) {
    binds.emplace_back([&] { done += writer.ensure(plan()).done() ? 1 : 0; });
  }
  store.wait_for_a_write();
  EXPECT_EQ(done, 0);  // nobody is told before it is stored
  store.tell(Outcome::kDone);
  binds.clear();
  EXPECT_EQ(done, 8);
  EXPECT_EQ(store.writes(), 1);
  EXPECT_EQ(writer.written(), 1U);
}

TEST(PlanWriter, AFailureIsToldAndTheNextBindTriesAgain) {
  HeldStore store;
  PlanWriter writer(store);
  store.tell(Outcome::kUnknown);
  const kube::Done failed = writer.ensure(plan());
  EXPECT_EQ(failed.outcome, Outcome::kUnknown);
  EXPECT_EQ(failed.detail, "as told");
  store.tell(Outcome::kDone);
  EXPECT_TRUE(writer.ensure(plan()).done());
  EXPECT_EQ(store.writes(), 2);
  EXPECT_EQ(writer.failed(), 1U);
  EXPECT_TRUE(writer.remove(plan().name).done());
  EXPECT_TRUE(writer.ensure(plan()).done());  // it is gone, so it is written again
  EXPECT_EQ(store.writes(), 3);
}

}  // namespace
}  // namespace mortise::extender
