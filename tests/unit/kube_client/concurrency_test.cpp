#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/kube/client/bind_pod.h"
#include "scheduler/kube/client/reflector.h"
#include "tests/support/test_pki.h"
#include "tests/unit/kube_client/scripted.h"
#include "tests/unit/kube_client/test_client.h"
#include "tests/unit/kube_client/test_folder.h"

// httplib and OpenSSL come as libraries that are not instrumented. ThreadSanitizer does not see how their locks and
// constants are guarded, but sees memcpy and memcmp on them; our own code is still watched in full.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libcpp-httplib.so\ncalled_from_lib:libssl.so\ncalled_from_lib:libcrypto.so\n";
}

namespace mortise::kube {
namespace {

using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;

constexpr int kThreads = 16;
constexpr int kCalls = 25;

/// Runs `work(i)` on so many threads at once.
template <class Work>
void all_at_once(const Work& work) {
  std::atomic<int> waiting = kThreads;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Concurrency, EveryCallGetsItsOwnAnswer) {
  FakeApiServer server([](const FakeRequest& request, FakeExchange& exchange) {
    exchange.respond(200, request.method + request.target + request.body);
  });
  ApiOptions options;
  options.max_idle_connections = 4;
  const auto client = test::make_client(server, options);
  std::atomic<int> right = 0;
  all_at_once([&](int i) {
    for (int n = 0; n < kCalls; ++n) {
      const std::string path = "/" + std::to_string(i) + "/" + std::to_string(n);
      const ApiResult got = client->get(path);
      const ApiResult posted = client->post(path, "x");
      right += got.ok() && got.response()->body == "GET" + path;
      right += posted.ok() && posted.response()->body == "POST" + path + "x";
    }
  });
  EXPECT_EQ(right, 2 * kThreads * kCalls);
}

TEST(Concurrency, TheSameOverTlsWithConnectionsCutAndTokensReplaced) {
  const test::TestAuthority authority;
  const test::TestFolder folder;
  FakeApiServer server(
      [](const FakeRequest& request, FakeExchange& exchange) {
        exchange.respond(200, request.headers.at("authorization") + request.target);
      },
      {.tls = test::server_context(authority.issue("api", "IP:127.0.0.1"))});
  ApiConfig config = test::config_of(server);
  config.ca_pem = authority.cert_pem();
  config.token_file = folder.write("token", "token-0");
  const auto client = test::make_client(config);
  std::atomic<int> wrong = 0;
  std::atomic<int> right = 0;
  all_at_once([&](int i) {
    for (int n = 0; n < kCalls; ++n) {
      if (i == 0) folder.write("token", "token-" + std::to_string(n));
      if (i == 1) server.cut_connections();
      const std::string path = "/" + std::to_string(i);
      const ApiResult result = client->get(path);
      if (!result.ok()) continue;  // its connection was cut
      const std::string& body = result.response()->body;
      ++(body.starts_with("Bearer token-") && body.ends_with(path) ? right : wrong);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
}

TEST(Concurrency, StopEndsAllThatWait) {
  std::atomic<int> asked = 0;
  FakeApiServer server([&](const FakeRequest&, FakeExchange& exchange) {
    ++asked;
    exchange.wait_for_client_to_close();
  });
  const auto client = test::make_client(server);
  std::stop_source stop;
  std::atomic<int> stopped = 0;
  std::thread stopper([&] {
    while (asked < kThreads) std::this_thread::yield();
    stop.request_stop();
  });
  all_at_once([&](int i) {
    CallOptions call;
    call.stop = stop.get_token();
    StreamOptions stream;
    stream.timeout = 600 * kSecond;
    stream.stop = stop.get_token();
    const ApiResult result = i % 2 == 0 ? client->get("/x", call)
                                        : client->stream(
                                              "/x", [](std::string_view) { return true; }, stream);
    if (result.transport_error() != nullptr) stopped += result.transport_error()->stopped;
  });
  stopper.join();
  EXPECT_EQ(stopped, kThreads);
}

/// Counts what it is told.
class CountingFeed final : public ObjectFeed {
 public:
  void list_started() override {}
  void listed(const ObjectName&, const nlohmann::json&) override { ++objects; }
  void list_completed(const std::string&) override {}
  void changed(const ObjectName&, const nlohmann::json&) override { ++objects; }
  void deleted(const ObjectName&, const nlohmann::json&) override {}
  void progressed(const std::string&) override {}

  std::atomic<int> objects = 0;
};

// Two reflectors and binds on one client, as in the extender; others read the state meanwhile.
TEST(Concurrency, ReflectorsRunBesideBindsUntilTheyAreStopped) {
  FakeApiServer server([](const FakeRequest& request, FakeExchange& exchange) {
    if (request.method == "POST") return exchange.respond(201, "{}");
    if (request.parameter("watch").empty()) return test::page(10, {test::object_text("a", 5)})(request, exchange);
    exchange.start_stream();
    int version = std::stoi(request.parameter("resourceVersion"));
    for (int i = 0; i < 20; ++i) {
      exchange.chunk(test::event_text("MODIFIED", test::object_text("a", ++version)));
    }
    exchange.drop();
  });
  const auto client = test::make_client(server);
  const SteadyClock clock;
  SleepingWaiter waiter;
  CountingFeed pods;
  CountingFeed nodes;
  ReflectorOptions options = {.path = "/api/v1/pods"};
  options.first_wait = kSecond / 1000;
  options.longest_wait = kSecond / 100;
  Reflector pod_reflector(*client, pods, options, clock, waiter, 1);
  options.path = "/api/v1/nodes";
  Reflector node_reflector(*client, nodes, options, clock, waiter, 2);
  std::atomic<int> bound = 0;
  {
    std::jthread a([&](const std::stop_token& stop) { pod_reflector.run(stop); });
    std::jthread b([&](const std::stop_token& stop) { node_reflector.run(stop); });
    all_at_once([&](int i) {
      for (int n = 0; n < kCalls; ++n) {
        bound += bind_pod(*client, {"ns", "p" + std::to_string(i), "u", "n1", {}}).done();
        (void)pod_reflector.status();
        (void)node_reflector.synced();
      }
    });
    while (pods.objects < 100 || nodes.objects < 100) std::this_thread::yield();
  }
  EXPECT_EQ(bound, kThreads * kCalls);
  EXPECT_TRUE(pod_reflector.synced());
  EXPECT_EQ(pod_reflector.status().lists, 1U);
  EXPECT_EQ(pod_reflector.status().gaps, 0U);
}

TEST(Concurrency, AReflectorThatWaitsIsStoppedAtOnce) {
  ApiConfig config;
  config.server = {false, "127.0.0.1", test::closed_port(), ""};
  const auto client = test::make_client(config);
  const SteadyClock clock;
  SleepingWaiter waiter;
  CountingFeed feed;
  ReflectorOptions options = {.path = "/api/v1/pods"};
  options.first_wait = 3600 * kSecond;
  options.longest_wait = 3600 * kSecond;
  Reflector reflector(*client, feed, options, clock, waiter, 1);
  std::jthread running([&](const std::stop_token& stop) { reflector.run(stop); });
  while (reflector.status().failures == 0) std::this_thread::yield();
  running.request_stop();
  running.join();
  EXPECT_FALSE(reflector.synced());
}

}  // namespace
}  // namespace mortise::kube
