#include "scheduler/kube/client/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <string>

#include "tests/unit/kube_client/test_client.h"
#include "tests/unit/kube_client/test_folder.h"

namespace mortise::kube {
namespace {

using test::config_of;
using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using test::make_client;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr Nanoseconds kShort = kSecond / 20;

void answer_ok(const FakeRequest&, FakeExchange& exchange) {
  exchange.respond(200, R"({"kind":"Pod"})");
}

/// Answers the first request of a connection and hangs up on the second, as a server does that closes idle connections
/// just when the client writes.
class HangUpOnSecond {
 public:
  void operator()(const FakeRequest& request, FakeExchange& exchange) {
    if (++asked_[request.connection] == 1) {
      exchange.respond(200, "{}");
    } else {
      exchange.drop();
    }
  }

 private:
  std::map<int, int> asked_;
};

TEST(ApiClient, SendsWhatAnApiServerNeedsAndGivesTheAnswer) {
  FakeRequest seen;
  FakeApiServer server([&](const FakeRequest& request, FakeExchange& exchange) {
    seen = request;
    exchange.respond(200, R"({"kind":"Pod"})");
  });
  ApiConfig config = config_of(server);
  config.token = "abc.def";
  const auto client = make_client(config);
  const ApiResult result = client->get("/api/v1/namespaces/a/pods/b?x=1");
  ASSERT_TRUE(result.ok()) << result.describe();
  EXPECT_EQ(result.response()->status, 200);
  EXPECT_EQ(result.response()->body, R"({"kind":"Pod"})");
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.target, "/api/v1/namespaces/a/pods/b?x=1");
  EXPECT_EQ(seen.headers["host"], "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(seen.headers["authorization"], "Bearer abc.def");
  EXPECT_EQ(seen.headers["accept"], "application/json");
  EXPECT_EQ(seen.headers["accept-encoding"], "identity");
  EXPECT_EQ(seen.headers.count("content-type"), 0U);
}

TEST(ApiClient, WritesCarryTheirBodyAndType) {
  std::vector<FakeRequest> seen;
  FakeApiServer server([&](const FakeRequest& request, FakeExchange& exchange) {
    seen.push_back(request);
    exchange.respond(201, "{}");
  });
  const auto client = make_client(server);
  EXPECT_TRUE(client->post("/a", "1").ok());
  EXPECT_TRUE(client->put("/b", "22").ok());
  EXPECT_TRUE(client->patch("/c", "{}").ok());
  EXPECT_TRUE(client->remove("/d").ok());
  EXPECT_TRUE(client->remove("/e", "{}").ok());
  EXPECT_THAT(server.asked(), ElementsAre("POST /a", "PUT /b", "PATCH /c", "DELETE /d", "DELETE /e"));
  EXPECT_EQ(seen[0].body, "1");
  EXPECT_EQ(seen[0].headers["content-type"], "application/json");
  EXPECT_EQ(seen[1].body, "22");
  EXPECT_EQ(seen[2].headers["content-type"], "application/merge-patch+json");
  EXPECT_EQ(seen[3].body, "");
  EXPECT_EQ(seen[4].body, "{}");
  EXPECT_EQ(server.connections(), 1);
}

TEST(ApiClient, AStatusIsTakenApart) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) {
    exchange.respond_status(409, "Conflict", R"(pod \"a\" is\nassigned already)");
  });
  const ApiResult result = make_client(server)->post("/x", "{}");
  ASSERT_NE(result.response(), nullptr);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.response()->status, 409);
  EXPECT_EQ(result.response()->reason, "Conflict");
  EXPECT_EQ(result.response()->message, R"(pod "a" is\x0aassigned already)");
  EXPECT_EQ(result.describe(), R"(409 Conflict: pod "a" is\x0aassigned already)");
}

TEST(ApiClient, AnErrorThatIsNoStatusIsOneLine) {
  FakeApiServer server(
      [](const FakeRequest&, FakeExchange& exchange) { exchange.respond(404, "404 page\nnot found"); });
  EXPECT_EQ(make_client(server)->get("/x").describe(), "404: 404 page\\x0anot found");
}

TEST(ApiClient, RetryAfterIsReportedInWholeSecondsOnly) {
  std::string header;
  FakeApiServer server([&](const FakeRequest&, FakeExchange& exchange) {
    exchange.respond_status(429, "TooManyRequests", "later", header);
  });
  const auto client = make_client(server);
  header = "Retry-After: 7\r\n";
  EXPECT_EQ(client->get("/x").response()->retry_after, 7 * kSecond);
  for (const char* other : {"", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", "Retry-After: -1\r\n"}) {
    header = other;
    EXPECT_EQ(client->get("/x").response()->retry_after, std::nullopt) << other;
  }
}

TEST(ApiClient, PathsGoBelowTheServersPath) {
  FakeApiServer server(answer_ok);
  ApiConfig config = config_of(server);
  config.server.base_path = "/k8s/clusters/c-1";
  EXPECT_TRUE(make_client(config)->get("/api/v1/nodes").ok());
  EXPECT_THAT(server.asked(), ElementsAre("GET /k8s/clusters/c-1/api/v1/nodes"));
}

TEST(ApiClient, Ipv6) {
  if (!test::has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  FakeApiServer server(answer_ok, {.v6 = true});
  EXPECT_TRUE(make_client(server)->get("/x").ok());
}

TEST(ApiClient, AConnectionIsUsedAgainUntilTheServerClosesIt) {
  std::string header;
  FakeApiServer server([&](const FakeRequest&, FakeExchange& exchange) {
    const bool close = !header.empty();
    exchange.respond(200, "{}", header);
    if (close) exchange.drop();
  });
  const auto client = make_client(server);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client->get("/x").ok());
  EXPECT_EQ(server.connections(), 1);
  header = "Connection: close\r\n";
  EXPECT_TRUE(client->post("/x", "{}").ok());
  EXPECT_EQ(server.connections(), 1);
  EXPECT_TRUE(client->post("/x", "{}").ok());
  EXPECT_EQ(server.connections(), 2);
}

TEST(ApiClient, AnIdleConnectionThatIsTooOldIsNotUsed) {
  FakeApiServer server(answer_ok);
  ManualClock clock;
  const auto client = ApiClient::make(config_of(server), {}, clock);
  EXPECT_TRUE((*client)->get("/x").ok());
  clock.advance(59 * kSecond);
  EXPECT_TRUE((*client)->get("/x").ok());
  EXPECT_EQ(server.connections(), 1);
  clock.advance(60 * kSecond);
  EXPECT_TRUE((*client)->get("/x").ok());
  EXPECT_EQ(server.connections(), 2);
}

TEST(ApiClient, AGetOnAStaleConnectionIsSentOnceMore) {
  FakeApiServer server(HangUpOnSecond{});
  const auto client = make_client(server);
  EXPECT_TRUE(client->get("/1").ok());
  const ApiResult second = client->get("/2");
  EXPECT_TRUE(second.ok()) << second.describe();
  EXPECT_EQ(server.connections(), 2);
  EXPECT_THAT(server.asked(), ElementsAre("GET /1", "GET /2", "GET /2"));
}

TEST(ApiClient, AWriteOnAStaleConnectionIsNotSentAgainAndMayHaveArrived) {
  FakeApiServer server(HangUpOnSecond{});
  const auto client = make_client(server);
  EXPECT_TRUE(client->get("/1").ok());
  const ApiResult second = client->post("/2", "{}");
  ASSERT_NE(second.transport_error(), nullptr);
  EXPECT_TRUE(second.transport_error()->may_have_arrived);
  EXPECT_THAT(second.describe(), HasSubstr("POST /2: no answer: "));
  EXPECT_EQ(server.connections(), 1);
}

TEST(ApiClient, AGetOnANewConnectionIsNotSentAgain) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) { exchange.drop(); });
  const ApiResult result = make_client(server)->get("/x");
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_TRUE(result.transport_error()->may_have_arrived);
  EXPECT_EQ(server.connections(), 1);
}

TEST(ApiClient, AGetWhoseAnswerHasBegunIsNotSentAgain) {
  std::atomic<int> asked = 0;
  FakeApiServer server([&](const FakeRequest&, FakeExchange& exchange) {
    if (++asked == 1) return exchange.respond(200, "{}");
    exchange.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    exchange.drop();
  });
  const auto client = make_client(server);
  EXPECT_TRUE(client->get("/x").ok());
  const ApiResult result = client->get("/x");
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_THAT(result.describe(), HasSubstr("the answer broke off"));
  EXPECT_EQ(asked, 2);
}

TEST(ApiClient, WhereNobodyListensNothingCanHaveArrived) {
  ApiConfig config;
  config.server = {false, "127.0.0.1", test::closed_port(), ""};
  const ApiResult result = make_client(config)->post("/x", "{}");
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_FALSE(result.transport_error()->may_have_arrived);
  EXPECT_THAT(result.describe(), HasSubstr("Connection refused"));
}

TEST(ApiClient, ARequestThatDidNotLeaveInFullCannotHaveArrived) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) { exchange.drop(); },
                       {.answer_before_body = true});
  // More than the socket buffers of both ends hold.
  const ApiResult result = make_client(server)->post("/x", std::string(std::size_t{64} << 20, 'x'));
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_FALSE(result.transport_error()->may_have_arrived);
  EXPECT_THAT(result.describe(), HasSubstr("could not be sent"));
}

TEST(ApiClient, AServerThatIsSilentIsGivenUp) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) { exchange.wait_for_client_to_close(); });
  CallOptions call;
  call.timeout = kShort;
  const ApiResult result = make_client(server)->post("/x", "{}", call);
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_TRUE(result.transport_error()->may_have_arrived);
  EXPECT_THAT(result.describe(), HasSubstr("timed out after 0.05 s"));
}

TEST(ApiClient, ATrickleDoesNotOutliveTheTimeLimit) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) {
    exchange.start_stream();
    while (!exchange.dropped()) exchange.chunk(" ");
  });
  CallOptions call;
  call.timeout = kShort;
  ApiOptions options;
  options.max_response_bytes = std::size_t{1} << 40;
  const ApiResult result = make_client(server, options)->get("/x", call);
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_THAT(result.describe(), HasSubstr("timed out"));
}

TEST(ApiClient, AnAnswerOfAnySizeIsTakenUpToTheLimit) {
  std::size_t size = 0;
  FakeApiServer server([&](const FakeRequest& request, FakeExchange& exchange) {
    if (request.path() == "/length") return exchange.respond(200, std::string(size, 'x'));
    exchange.start_stream();
    exchange.chunk(std::string(size, 'x'));
    exchange.end_stream();
  });
  ApiOptions options;
  options.max_response_bytes = 100'000;
  const auto client = make_client(server, options);
  for (const char* path : {"/length", "/chunked"}) {
    size = 100'000;
    EXPECT_TRUE(client->get(path).ok()) << path;
    size = 100'001;
    EXPECT_THAT(client->get(path).describe(), HasSubstr("larger than 100000 bytes")) << path;
  }
}

TEST(ApiClient, WhatIsNotHttpIsNotAnAnswer) {
  const std::string long_line(100'000, 'x');
  for (const std::string& text :
       {std::string("\x15\x03\x01\x00\x02\x02\x0a"), std::string("SSH-2.0-x\r\n"), std::string("HTTP/2 200\r\n\r\n"),
        "HTTP/1.1 200 " + long_line + "\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + long_line + "\r\n\r\n",
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
    // A server for each: the client may give up while the server still writes.
    FakeApiServer server([&](const FakeRequest&, FakeExchange& exchange) {
      exchange.raw(text);
      exchange.drop();
    });
    const auto client = make_client(server);
    const ApiResult result = client->get("/x");
    ASSERT_NE(result.transport_error(), nullptr) << text.substr(0, 40);
    EXPECT_TRUE(result.transport_error()->may_have_arrived);
  }
}

TEST(ApiClient, StopEndsARequestThatWaits) {
  std::promise<void> arrived;
  FakeApiServer server([&](const FakeRequest&, FakeExchange& exchange) {
    arrived.set_value();
    exchange.wait_for_client_to_close();
  });
  const auto client = make_client(server);
  std::stop_source stop;
  CallOptions call;
  call.stop = stop.get_token();
  auto result = std::async(std::launch::async, [&] { return client->get("/x", call); });
  arrived.get_future().wait();
  stop.request_stop();
  const ApiResult stopped = result.get();
  ASSERT_NE(stopped.transport_error(), nullptr);
  EXPECT_TRUE(stopped.transport_error()->stopped);
  EXPECT_TRUE(stopped.transport_error()->may_have_arrived);
  // Asked before it begins, nothing is sent.
  const ApiResult late = client->get("/x", call);
  EXPECT_TRUE(late.transport_error()->stopped);
  EXPECT_FALSE(late.transport_error()->may_have_arrived);
}

TEST(ApiClient, ATokenThatTheServerRefusesIsReadAgainForTheNextCall) {
  const test::TestFolder folder;
  const std::string file = folder.write("token", "old");
  FakeApiServer server([&](const FakeRequest& request, FakeExchange& exchange) {
    if (request.headers.at("authorization") == "Bearer new") return exchange.respond(200, "{}");
    folder.write("token", "new");
    exchange.respond_status(401, "Unauthorized", "Unauthorized");
  });
  ApiConfig config = config_of(server);
  config.token_file = file;
  const auto client = make_client(config);
  EXPECT_EQ(client->get("/x").response()->status, 401);
  EXPECT_EQ(client->get("/x").response()->status, 200);
}

TEST(ApiClient, WithoutItsTokenNothingIsSent) {
  FakeApiServer server(answer_ok);
  ApiConfig config = config_of(server);
  config.token_file = "/nowhere/token";
  const ApiResult result = make_client(config)->get("/x");
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_FALSE(result.transport_error()->may_have_arrived);
  EXPECT_THAT(result.describe(), HasSubstr("/nowhere/token: cannot be read"));
  config.token_file = "";
  config.token = "a\r\nX: y";
  const SteadyClock clock;
  EXPECT_FALSE(ApiClient::make(config, {}, clock).ok());
}

TEST(ApiClient, AStreamIsHandedOnAsItComes) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) {
    exchange.start_stream();
    exchange.chunk("one");
    exchange.chunk("two");
    exchange.end_stream();
  });
  std::string text;
  StreamOptions call;
  call.timeout = 60 * kSecond;
  const ApiResult result = make_client(server)->stream(
      "/x",
      [&](std::string_view piece) {
        text += piece;
        return true;
      },
      call);
  EXPECT_TRUE(result.ok()) << result.describe();
  EXPECT_EQ(text, "onetwo");
  EXPECT_EQ(result.response()->body, "");
}

TEST(ApiClient, AnErrorInsteadOfAStreamIsInTheResult) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) {
    exchange.respond_status(410, "Expired", "too old resource version");
  });
  StreamOptions call;
  call.timeout = 60 * kSecond;
  const ApiResult result = make_client(server)->stream(
      "/x", [](std::string_view) { return true; }, call);
  EXPECT_EQ(result.describe(), "410 Expired: too old resource version");
}

TEST(ApiClient, ASilentStreamIsNoticed) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) {
    exchange.start_stream();
    exchange.chunk("one");
    exchange.wait_for_client_to_close();
  });
  StreamOptions call;
  call.timeout = 60 * kSecond;
  call.silence = kShort;
  const ApiResult result = make_client(server)->stream(
      "/x", [](std::string_view) { return true; }, call);
  ASSERT_NE(result.transport_error(), nullptr);
  EXPECT_TRUE(result.transport_error()->silent);
}

TEST(ApiClient, TheReceiverMayEndAStream) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) {
    exchange.start_stream();
    while (!exchange.dropped()) exchange.chunk("x");
  });
  StreamOptions call;
  call.timeout = 60 * kSecond;
  EXPECT_TRUE(make_client(server)
                  ->stream(
                      "/x", [](std::string_view) { return false; }, call)
                  .ok());
}

}  // namespace
}  // namespace mortise::kube
