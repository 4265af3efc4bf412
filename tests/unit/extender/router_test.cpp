#include "scheduler/extender/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "scheduler/extender/connection.h"
#include "scheduler/extender/gate.h"
#include "tests/unit/extender/raw_client.h"

namespace mortise::extender {
namespace {

using testing::HasSubstr;

/// Holds whoever comes until it is opened.
class Barrier {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void until_waiting(int count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return waiting_ >= count; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

/// A server with two routes: /slow is answered once the barrier opens, /echo with its body at once.
class RouterTest : public testing::Test {
 protected:
  void start(std::size_t max_connections, Gate* gate = nullptr) {
    Listener::Options options;
    options.max_connections = max_connections;
    options.count_turned_away = [this] { ++turned_away_; };
    listener_ = std::make_unique<Listener>(std::move(options));
    ASSERT_TRUE(listener_->open({"127.0.0.1", 0}).ok());
    std::vector<Route> routes = {{"POST", "/echo", "text/plain",
                                  [](const WebRequest& r) {
                                    return Reply{200, r.body};
                                  }},
                                 {"POST", "/slow", "text/plain", [this](const WebRequest&) {
                                    barrier_.wait();
                                    return Reply{200, "slow"};
                                  }}};
    routes[1].gate = gate;
    RouterOptions router_options;
    router_options.max_request_bytes = 1 << 20;
    router_options.count_refused = [this] { ++refused_; };
    router_options.stopping = [this] { return listener_->stopping(); };
    router_options.stop_fd = listener_->stop_fd();
    router_ = std::make_unique<Router>(std::move(router_options), std::move(routes));
    listener_->run(
        [this](Connection& connection, Listener::Admission admission) { router_->serve(connection, admission); });
  }
  ~RouterTest() override { barrier_.open(); }

  Barrier barrier_;
  std::atomic<int> turned_away_ = 0;
  std::atomic<int> refused_ = 0;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(RouterTest, MoreConnectionsThanAllowedAreAnswered503AndClosed) {
  start(2);
  auto first = std::make_unique<RawClient>(listener_->address());
  RawClient second(listener_->address());
  for (RawClient* client : {first.get(), &second}) {
    ASSERT_TRUE(client->send(post_text("/echo", "a")));
    ASSERT_EQ(client->receive().value_or(RawResponse{}).body, "a");
  }
  RawClient third(listener_->address());
  ASSERT_TRUE(third.send(post_text("/echo", "b")));
  const RawResponse refused = third.receive().value_or(RawResponse{});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(refused.headers.at("connection"), "close");
  EXPECT_THAT(refused.body, HasSubstr("--max-connections"));
  EXPECT_TRUE(third.closed_by_server());
  EXPECT_EQ(turned_away_, 1);
  // The two others go on, and there is room again once one of them has left.
  ASSERT_TRUE(second.send(post_text("/echo", "c")));
  EXPECT_EQ(second.receive().value_or(RawResponse{}).body, "c");
  first.reset();
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (status != 200 && std::chrono::steady_clock::now() < deadline) {
    RawClient next(listener_->address());
    next.send(post_text("/echo", "d"));
    status = next.receive().value_or(RawResponse{}).status;
  }
  EXPECT_EQ(status, 200);
}

TEST_F(RouterTest, ARequestThatFindsTheGateFullIsAnswered503AndTheConnectionGoesOn) {
  Gate gate(1);
  start(8, &gate);
  RawClient first(listener_->address());
  ASSERT_TRUE(first.send(post_text("/slow", "x")));
  barrier_.until_waiting(1);
  RawClient second(listener_->address());
  ASSERT_TRUE(second.send(post_text("/slow", "x")));
  const RawResponse refused = second.receive().value_or(RawResponse{});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_THAT(refused.body, HasSubstr("--max-verbs"));
  EXPECT_EQ(refused_, 1);
  barrier_.open();
  EXPECT_EQ(first.receive().value_or(RawResponse{}).body, "slow");
  ASSERT_TRUE(second.send(post_text("/slow", "x")));
  EXPECT_EQ(second.receive().value_or(RawResponse{}).body, "slow");
}

TEST(Gate, OneThatWaitsGetsThePlaceThatBecomesFree) {
  Gate gate(1);
  ASSERT_TRUE(gate.enter(0));
  EXPECT_FALSE(gate.enter(0));
  std::thread waiting([&] { EXPECT_TRUE(gate.enter(60 * kSecond)); });
  gate.leave();
  waiting.join();
  EXPECT_FALSE(gate.enter(0));
}

TEST_F(RouterTest, StoppingLetsARequestThatHasBegunArriveAndBeAnswered) {
  start(8);
  RawClient client(listener_->address());
  RawClient idle(listener_->address());
  ASSERT_TRUE(idle.send(post_text("/echo", "a")));
  ASSERT_TRUE(idle.receive().has_value());
  ASSERT_TRUE(client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"));
  ASSERT_EQ(client.receive().value_or(RawResponse{}).status, 100);  // the request has begun
  std::thread stopper([this] { listener_->stop(60 * kSecond); });
  EXPECT_TRUE(idle.closed_by_server());  // so the stop has begun
  ASSERT_TRUE(client.send("0123456789"));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, "0123456789");
  EXPECT_TRUE(client.closed_by_server());
  stopper.join();
  EXPECT_FALSE(RawClient(listener_->address()).connected());
}

TEST_F(RouterTest, StoppingCutsARequestThatTakesLongerThanTheGrace) {
  start(8);
  RawClient client(listener_->address());
  ASSERT_TRUE(client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"));
  ASSERT_EQ(client.receive().value_or(RawResponse{}).status, 100);
  listener_->stop(0);
  client.send("01234");
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(RouterTest, StoppingWaitsForAnAnswerBeingMade) {
  start(8);
  RawClient client(listener_->address());
  ASSERT_TRUE(client.send(post_text("/slow", "x")));
  barrier_.until_waiting(1);
  std::thread stopper([this] { listener_->stop(60 * kSecond); });
  while (!listener_->stopping()) std::this_thread::yield();
  barrier_.open();
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, "slow");
  stopper.join();
}

}  // namespace
}  // namespace mortise::extender
