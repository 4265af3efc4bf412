#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

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
