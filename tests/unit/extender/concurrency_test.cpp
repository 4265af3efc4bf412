#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/extender/binder.h"
#include "scheduler/extender/http_server.h"
#include "tests/unit/extender/raw_client.h"
#include "tests/unit/extender/test_cluster.h"

// httplib comes as a library that is not instrumented. ThreadSanitizer does not see how its function-local constants
// are guarded, but sees memcpy and memcmp on them; our own code is still watched in full.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libcpp-httplib.so\n";
}

namespace mortise::extender {
namespace {

constexpr int kPods = 50;

std::string filter_body(int i) {
  return R"({"Pod":{"metadata":{"namespace":"default","name":"p)" + std::to_string(i) + R"(","uid":"u)" +
         std::to_string(i) +
         R"("},"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}},)"
         R"("NodeNames":["big-a","big-b","small","plain"]})";
}

std::string bind_body(int i, const std::string& node) {
  return R"({"PodName":"p)" + std::to_string(i) + R"(","PodNamespace":"default","PodUID":"u)" + std::to_string(i) +
         R"(","Node":")" + node + R"("})";
}

/// A cluster with one GPU free, on `small`.
void leave_one_gpu(TestCluster& cluster) {
  cluster.occupy("big-a", 8);
  cluster.occupy("big-b", 8);
  cluster.occupy("small", 1);
}

/// Runs `work(i)` for every pod at once.
void all_at_once(const std::function<void(int)>& work) {
  std::atomic<int> waiting = kPods;
  std::vector<std::thread> threads;
  for (int i = 0; i < kPods; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Concurrency, OfFiftyPodsForOneGpuExactlyOneIsBound) {
  TestCluster cluster;
  leave_one_gpu(cluster);
  std::atomic<int> bound = 0;
  all_at_once([&](int i) {
    cluster.service().filter(filter_body(i));
    if (cluster.service().bind(bind_body(i, "small")).body == R"({"Error":""})") ++bound;
  });
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(cluster.free_gpus("small"), 0);
  EXPECT_TRUE(cluster.cluster().check().ok());
}

TEST(Concurrency, TheSameOverHttpOnFiftyConnections) {
  TestCluster cluster;
  leave_one_gpu(cluster);
  const auto server = HttpServer::start_scheduler(cluster.service(), {"127.0.0.1", 0}, {});
  ASSERT_TRUE(server.ok()) << server.message();
  const auto admin = HttpServer::start_admin(cluster.service(), {"127.0.0.1", 0});
  ASSERT_TRUE(admin.ok()) << admin.message();
  std::atomic<int> bound = 0;
  std::atomic<int> answered = 0;
  all_at_once([&](int i) {
    RawClient client((*server)->address());
    client.send(post_text("/filter", filter_body(i)));
    answered += client.receive().has_value();
    client.send(post_text("/bind", bind_body(i, "small")));
    if (client.receive().value_or(RawResponse{}).body == R"({"Error":""})") ++bound;
    RawClient scrape((*admin)->address());
    scrape.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    answered += scrape.receive().has_value();
  });
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(answered, 2 * kPods);
  EXPECT_TRUE(cluster.cluster().check().ok());
}

// 18 GPUs for 50 pods: each pod asks until it is bound or refused by every node.
TEST(Concurrency, NoGpuIsGivenTwice) {
  TestCluster cluster;
  constexpr std::array<const char*, 3> kNodes = {"big-a", "big-b", "small"};
  std::atomic<int> bound = 0;
  all_at_once([&](int i) {
    cluster.service().filter(filter_body(i));
    for (const char* node : kNodes) {
      if (cluster.service().bind(bind_body(i, node)).body != R"({"Error":""})") continue;
      ++bound;
      return;
    }
  });
  EXPECT_EQ(bound, 18);
  EXPECT_EQ(cluster.cluster().totals().whole_free_gpus, 0);
  EXPECT_TRUE(cluster.cluster().check().ok());
}

/// Answers no Binding before so many are on their way at once.
class MeetingBinder final : public Binder {
 public:
  explicit MeetingBinder(int expected) : expected_(expected) {}

  BindResult bind(const kube::Binding&) override {
    std::unique_lock lock(mutex_);
    ++there_;
    all_there_.notify_all();
    constexpr std::chrono::seconds kPatience{60};  // only a failure waits so long
    const bool met = all_there_.wait_for(lock, kPatience, [&] { return there_ >= expected_ && !held_; });
    return {met ? BindResult::State::kBound : BindResult::State::kNotBound, met ? "" : "alone"};
  }
  void wait_until_all_are_there() {
    std::unique_lock lock(mutex_);
    all_there_.wait(lock, [&] { return there_ >= expected_; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    all_there_.notify_all();
  }

 private:
  const int expected_;
  std::mutex mutex_;
  std::condition_variable all_there_;
  int there_ = 0;
  bool held_ = true;
};

// Filters are answered meanwhile: nothing is locked while the API server is asked.
TEST(Concurrency, TwoHundredBindingsAreOnTheirWayAtOnceAndFiltersAreAnswered) {
  constexpr int kBindings = 200;
  TestCluster cluster("first-fit", 60 * kSecond);
  std::vector<std::string> nodes;
  for (int i = 0; i < kBindings / 8 + 1; ++i) {
    nodes.push_back("more-" + std::to_string(i));
    cluster.add(nodes.back(), 8, "A100");
  }
  MeetingBinder binder(kBindings);
  const ClusterView::Parts parts = cluster.view_parts();
  Service service(parts.handlers, parts.cluster, parts.fragmentation, parts.metrics, cluster.clock(), &binder);
  const auto server = HttpServer::start_scheduler(service, {"127.0.0.1", 0}, {});
  ASSERT_TRUE(server.ok()) << server.message();

  for (int i = 0; i <= kBindings; ++i) service.filter(filter_body(i));
  std::atomic<int> bound = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kBindings; ++i) {
    threads.emplace_back([&, i] {
      RawClient client((*server)->address());
      client.send(post_text("/bind", bind_body(i, nodes[static_cast<std::size_t>(i / 8)])));
      if (client.receive().value_or(RawResponse{}).body == R"({"Error":""})") ++bound;
    });
  }
  binder.wait_until_all_are_there();
  RawClient client((*server)->address());
  client.send(post_text("/filter", filter_body(kBindings)));
  EXPECT_TRUE(client.receive().has_value());
  binder.let_go();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bound, kBindings);
  EXPECT_TRUE(cluster.cluster().check().ok());
}

TEST(Concurrency, StoppingWhileClientsAskLosesNoAnswerItBegan) {
  TestCluster cluster;
  const auto server = HttpServer::start_scheduler(cluster.service(), {"127.0.0.1", 0}, {});
  ASSERT_TRUE(server.ok()) << server.message();
  std::atomic<int> cut_short = 0;
  std::thread stopper;
  all_at_once([&](int i) {
    RawClient client((*server)->address());
    if (i == 0) stopper = std::thread([&] { (*server)->stop(10 * kSecond); });
    for (int n = 0; n < 20 && client.send(post_text("/filter", filter_body(i))); ++n) {
      const auto response = client.receive();
      if (!response) break;  // closed between two requests
      if (response->status != 200 || !response->body.ends_with(R"("Error":""})")) ++cut_short;
    }
  });
  stopper.join();
  EXPECT_EQ(cut_short, 0);
}

}  // namespace
}  // namespace mortise::extender
