#include "scheduler/extender/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <vector>

#include "tests/unit/extender/raw_client.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::HasSubstr;

const std::string kPod = R"("Pod":{"metadata":{"name":"p","uid":"u1"},"spec":{"containers":[{"name":"c",)"
                         R"("resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})";
const std::string kBody = "{" + kPod + R"(,"Nodes":null,"NodeNames":["big-a","plain"]})";
const std::string kAnswer = R"({"Nodes":null,"NodeNames":["big-a"],"FailedNodes":{},"FailedAndUnresolvableNodes":)"
                            R"({"plain":"NoGpu: the node has no GPU"},"Error":""})";
const std::string kBind = R"({"PodName":"p","PodNamespace":"default","PodUID":"u1","Node":"big-a"})";

class HttpServerTest : public testing::Test {
 protected:
  void start(const ServerOptions& options = {}, const std::string& host = "127.0.0.1") {
    auto scheduler = HttpServer::start_scheduler(cluster_.service(), {host, 0}, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.message();
    scheduler_ = *std::move(scheduler);
    auto admin = HttpServer::start_admin(cluster_.service(), {"127.0.0.1", 0});
    ASSERT_TRUE(admin.ok()) << admin.message();
    admin_ = *std::move(admin);
  }
  std::string address() const { return scheduler_->address(); }

  /// Sends on a connection of its own.
  RawResponse exchange(const std::string& to, const std::string& request) {
    RawClient client(to);
    EXPECT_TRUE(client.connected());
    EXPECT_TRUE(client.send(request));
    const auto response = client.receive();
    EXPECT_TRUE(response.has_value()) << request.substr(0, 200);
    return response.value_or(RawResponse{});
  }

  TestCluster cluster_;
  std::unique_ptr<HttpServer> scheduler_;
  std::unique_ptr<HttpServer> admin_;
};

TEST_F(HttpServerTest, AnswersTheVerbs) {
  start();
  const RawResponse filter = exchange(address(), post_text("/filter", kBody));
  EXPECT_EQ(filter.status, 200);
  EXPECT_EQ(filter.headers.at("content-type"), "application/json");
  EXPECT_EQ(filter.body, kAnswer);
  EXPECT_EQ(exchange(address(), post_text("/prioritize", kBody)).body,
            R"([{"Host":"big-a","Score":10},{"Host":"plain","Score":0}])");
  EXPECT_EQ(exchange(address(), post_text("/bind", kBind)).body, R"({"Error":""})");
  EXPECT_EQ(exchange(address(), post_text("/preempt", "{" + kPod + "}")).body, R"({"NodeNameToMetaVictims":{}})");
  EXPECT_EQ(cluster_.free_gpus("big-a"), 7);
}

TEST_F(HttpServerTest, AnotherMethodIs405AndAnotherPath404) {
  start();
  for (const char* verb : {"/filter", "/prioritize", "/bind", "/preempt"}) {
    for (const char* method : {"GET", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
      EXPECT_EQ(exchange(address(), std::string(method) + " " + verb + " HTTP/1.0\r\n\r\n").status, 405)
          << method << verb;
    }
  }
  const RawResponse refused = exchange(address(), "GET /filter HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(refused.headers.at("allow"), "POST");
  EXPECT_THAT(refused.body, HasSubstr("POST /filter"));
  for (const char* path : {"/", "/scheduler/filter", "/filter/", "/Filter", "/preempt/", "/metrics"}) {
    EXPECT_EQ(exchange(address(), post_text(path, kBody)).status, 404) << path;
    EXPECT_EQ(exchange(address(), std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n").status, 404) << path;
  }
}

TEST_F(HttpServerTest, AQueryPartChangesNothing) {
  start();
  EXPECT_EQ(exchange(address(), post_text("/filter?timeout=5s", kBody)).body, kAnswer);
}

TEST_F(HttpServerTest, TheAdminSideIsApart) {
  start();
  for (const char* path : {"/healthz", "/readyz"}) {
    const RawResponse response =
        exchange(admin_->address(), std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "ok\n");
  }
  exchange(address(), post_text("/filter", kBody));
  const RawResponse metrics = exchange(admin_->address(), "GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.headers.at("content-type"), HasSubstr("version=0.0.4"));
  EXPECT_THAT(metrics.body, HasSubstr("\nmortise_extender_requests_total{outcome=\"ok\",verb=\"filter\"} 1\n"));
  EXPECT_EQ(exchange(admin_->address(), post_text("/filter", kBody)).status, 404);
  EXPECT_EQ(exchange(admin_->address(), post_text("/healthz", "")).status, 405);
}

TEST_F(HttpServerTest, AConnectionServesManyRequests) {
  start();
  RawClient client(address());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(client.send(post_text("/prioritize", kBody)));
    const auto response = client.receive();
    ASSERT_TRUE(response.has_value()) << "request " << i;
    EXPECT_EQ(response->status, 200);
  }
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  RawClient client(address());
  ASSERT_TRUE(client.send(post_text("/filter", kBody) + post_text("/prioritize", kBody) + post_text("/nowhere", "{}") +
                          "GET /filter HTTP/1.1\r\nHost: x\r\n\r\n" + post_text("/filter", "")));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
  EXPECT_THAT(client.receive().value_or(RawResponse{}).body, HasSubstr("\"Score\":10"));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).status, 404);
  EXPECT_EQ(client.receive().value_or(RawResponse{}).status, 405);
  EXPECT_THAT(client.receive().value_or(RawResponse{}).body, HasSubstr("request has no body"));
}

TEST_F(HttpServerTest, TheContentTypeDoesNotMatter) {
  start();
  const std::string length = "Content-Length: " + std::to_string(kBody.size()) + "\r\n";
  for (const char* type :
       {"", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\n", "Content-Type: multipart/form-data\r\n"}) {
    EXPECT_EQ(exchange(address(), "POST /filter HTTP/1.1\r\nHost: x\r\n" + length + type + "\r\n" + kBody).body,
              kAnswer)
        << type;
  }
}

TEST_F(HttpServerTest, AcceptEncodingDoesNotCompressTheAnswer) {
  start();
  const std::string head = "POST /filter HTTP/1.1\r\nAccept-Encoding: gzip, br\r\nRange: bytes=0-3\r\nContent-Length: ";
  const RawResponse response = exchange(address(), head + std::to_string(kBody.size()) + "\r\n\r\n" + kBody);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, kAnswer);
}

TEST_F(HttpServerTest, Http10IsAnsweredAndClosed) {
  start();
  RawClient client(address());
  ASSERT_TRUE(
      client.send("POST /filter HTTP/1.0\r\nContent-Length: " + std::to_string(kBody.size()) + "\r\n\r\n" + kBody));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpServerTest, ConnectionCloseIsHonoured) {
  start();
  RawClient client(address());
  ASSERT_TRUE(client.send("POST /filter HTTP/1.1\r\nConnection: close\r\nContent-Length: " +
                          std::to_string(kBody.size()) + "\r\n\r\n" + kBody));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpServerTest, AChunkedRequestIsRead) {
  start();
  RawClient client(address());
  std::string request = "POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < kBody.size(); at += 50) {
    const std::string piece = kBody.substr(at, 50);
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    request += size + piece + "\r\n";
  }
  ASSERT_TRUE(client.send(request + "0\r\n\r\n"));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
  ASSERT_TRUE(client.send(post_text("/filter", kBody)));  // the next one begins where it should
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
}

TEST_F(HttpServerTest, ExpectContinueIsToldToGoOn) {
  start();
  RawClient client(address());
  ASSERT_TRUE(client.send("POST /filter HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
                          std::to_string(kBody.size()) + "\r\n\r\n"));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).status, 100);  // before the body is sent
  ASSERT_TRUE(client.send(kBody));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
}

TEST_F(HttpServerTest, AClientThatLeavesWithinTheBodyHarmsNobody) {
  start();
  for (int i = 0; i < 20; ++i) {
    RawClient client(address());
    ASSERT_TRUE(client.send("POST /bind HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"PodName\":"));
  }
  EXPECT_EQ(exchange(address(), post_text("/filter", kBody)).body, kAnswer);
}

TEST_F(HttpServerTest, ATooLargeRequestIsAnsweredAndTheConnectionGoesOn) {
  start({.max_request_bytes = std::size_t{1} << 20});
  const std::string large = "{" + kPod + R"(,"NodeNames":[")" + std::string(2 << 20, 'x') + R"("]})";
  RawClient client(address());
  for (const char* verb : {"/filter", "/bind"}) {
    ASSERT_TRUE(client.send(post_text(verb, large)));
    const RawResponse response = client.receive().value_or(RawResponse{});
    EXPECT_EQ(response.status, 200) << verb;
    EXPECT_THAT(response.body, HasSubstr(R"x("Error":"request is larger than 1 MiB (--max-request-mib)"})x")) << verb;
  }
  ASSERT_TRUE(client.send(post_text("/prioritize", large)));
  const RawResponse response = client.receive().value_or(RawResponse{});
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.body, "request is larger than 1 MiB (--max-request-mib)\n");
  // The same without a length to tell it in advance.
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", large.size());
  ASSERT_TRUE(client.send("POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(size) +
                          large + "\r\n0\r\n\r\n"));
  EXPECT_THAT(client.receive().value_or(RawResponse{}).body, HasSubstr("larger than 1 MiB"));
  ASSERT_TRUE(client.send(post_text("/filter", kBody)));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
}

TEST_F(HttpServerTest, ALargeRequestIsServed) {
  start();
  std::string body = "{" + kPod + R"(,"Nodes":{"items":[)";
  for (int i = 0; i < 5000; ++i) {
    body += R"({"metadata":{"name":"n)" + std::to_string(i) + R"(","labels":{"filler":")" + std::string(500, 'x') +
            "\"}}},";
  }
  body += R"({"metadata":{"name":"big-b"}}]}})";
  const RawResponse response = exchange(address(), post_text("/filter", body));
  EXPECT_THAT(response.body.substr(0, 100),
              HasSubstr(R"({"Nodes":{"metadata":{},"items":[{"metadata":{"name":"big-b"}}]})"));
}

TEST_F(HttpServerTest, WhatIsNoHttpIsRefusedAndClosed) {
  start();
  for (const std::string& bytes : {std::string("\x16\x03\x01\x02\0 hello\r\n\r\n", 15), std::string("GARBAGE\r\n\r\n"),
                                   "POST /filter HTTP/1.1\r\nA: " + std::string(100'000, 'x') + "\r\n\r\n",
                                   "GET /" + std::string(9'000, 'x') + " HTTP/1.1\r\n\r\n"}) {
    RawClient client(address());
    client.send(bytes);
    const auto response = client.receive();
    if (response) {
      EXPECT_GE(response->status, 400);
      EXPECT_TRUE(client.closed_by_server());
    }
  }
  std::string many = "POST /filter HTTP/1.1\r\n";
  for (int i = 0; i < 20'000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  RawClient client(address());
  client.send(many + "\r\n");
  EXPECT_NE(client.receive().value_or(RawResponse{}).status, 200);
  EXPECT_EQ(exchange(address(), post_text("/filter", kBody)).body, kAnswer);
}

TEST_F(HttpServerTest, APathOfAnyLengthIsOnlyNotFound) {
  start();
  EXPECT_EQ(exchange(address(), post_text("/" + std::string(8'000, 'a'), "{}")).status, 404);
}

TEST_F(HttpServerTest, ABodyOnAMethodWithoutOneIsNotTakenForTheNextRequest) {
  start();
  RawClient client(address());
  ASSERT_TRUE(client.send("GET /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nPOST "));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).status, 405);
  ASSERT_TRUE(client.send(post_text("/filter", kBody)));
  EXPECT_EQ(client.receive().value_or(RawResponse{}).body, kAnswer);
}

TEST_F(HttpServerTest, BindIsServedOnLoopbackOnlyUnlessAllowed) {
  start({}, "0.0.0.0");
  const std::string local = "127.0.0.1" + address().substr(address().rfind(':'));
  exchange(local, post_text("/filter", kBody));
  const RawResponse refused = exchange(local, post_text("/bind", kBind));
  EXPECT_EQ(refused.status, 200);
  EXPECT_THAT(refused.body, HasSubstr("bind is served on loopback addresses only"));
  EXPECT_EQ(cluster_.free_gpus("big-a"), 8);
  // It changes nothing, so anybody may ask.
  EXPECT_EQ(exchange(local, post_text("/preempt", "{" + kPod + "}")).body, R"({"NodeNameToMetaVictims":{}})");
  start({.allow_bind = true}, "0.0.0.0");
  const std::string allowed = "127.0.0.1" + address().substr(address().rfind(':'));
  EXPECT_EQ(exchange(allowed, post_text("/bind", kBind)).body, R"({"Error":""})");
}

TEST_F(HttpServerTest, StoppingClosesIdleConnectionsAtOnce) {
  start();
  RawClient client(address());
  ASSERT_TRUE(client.send(post_text("/filter", kBody)));
  ASSERT_TRUE(client.receive().has_value());
  scheduler_->stop(0);
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_FALSE(RawClient(address()).connected());
  scheduler_->stop(0);
}

TEST_F(HttpServerTest, APortInUseIsAnError) {
  start();
  const int port = std::stoi(address().substr(address().rfind(':') + 1));
  const auto second = HttpServer::start_scheduler(cluster_.service(), {"127.0.0.1", port}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.message(), HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(port)));
}

TEST(ParseEndpoint, TakesAddressAndPort) {
  EXPECT_EQ(parse_endpoint("127.0.0.1:80")->host, "127.0.0.1");
  EXPECT_EQ(parse_endpoint("127.0.0.1:80")->port, 80);
  EXPECT_EQ(parse_endpoint("[::1]:0")->host, "::1");
  EXPECT_EQ(parse_endpoint("localhost:65535")->port, 65535);
  for (const char* bad : {"", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
                          "::1:80", "[::1]", "a:1 ", "[]:1"}) {
    EXPECT_FALSE(parse_endpoint(bad).ok()) << bad;
  }
}

TEST_F(HttpServerTest, WhoHoldsAllAdminConnectionsDoesNotHideThatItIsAlive) {
  start();
  const auto get = [](const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n"; };
  std::vector<std::unique_ptr<RawClient>> held;
  for (int i = 0; i < 64; ++i) {
    held.push_back(std::make_unique<RawClient>(admin_->address()));
    ASSERT_TRUE(held.back()->send(get("/healthz")));
    ASSERT_TRUE(held.back()->receive().has_value());
  }
  EXPECT_EQ(exchange(admin_->address(), get("/healthz")).status, 200);
  EXPECT_EQ(exchange(admin_->address(), get("/readyz")).status, 200);
  EXPECT_EQ(exchange(admin_->address(), get("/metrics")).status, 503);
}

/// An API server that does not answer.
class StuckBinder final : public Binder {
 public:
  BindResult bind(const kube::Binding&) override {
    asked.count_down();
    ended.wait();
    return {BindResult::State::kUnknown, "the extender is stopping"};
  }
  std::latch asked{1};
  std::latch ended{1};
};

TEST_F(HttpServerTest, AfterItsGraceWhatABindStillWaitsForIsEnded) {
  StuckBinder binder;
  const ClusterView::Parts parts = cluster_.view_parts();
  Service service(parts.handlers, parts.cluster, parts.fragmentation, parts.metrics, cluster_.clock(), &binder);
  auto server = HttpServer::start_scheduler(service, {"127.0.0.1", 0}, {});
  ASSERT_TRUE(server.ok());
  exchange((*server)->address(), post_text("/filter", kBody));
  RawClient client((*server)->address());
  EXPECT_TRUE(client.send(post_text("/bind", kBind)));
  binder.asked.wait();
  (*server)->stop(0, [&] { binder.ended.count_down(); });
  EXPECT_EQ(cluster_.bookings().reserved(), 1U);  // it may have been bound
}

}  // namespace
}  // namespace mortise::extender
