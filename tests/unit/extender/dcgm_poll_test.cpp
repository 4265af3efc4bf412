// One question to a Prometheus server, whatever it answers.
#include "scheduler/extender/dcgm_poll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_api_server.h"

namespace mortise::extender {
namespace {

using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSeries = R"({"status":"success","data":{"resultType":"vector","result":[
  {"metric":{"gpu":"1","Hostname":"a","namespace":"ml","pod":"train"},"value":[1748779290,"1748779288"]}]}})";

Result<std::vector<kube::GpuSample>> ask(const FakeApiServer& server, const std::string& path = "") {
  const SteadyClock clock;
  const auto poll = DcgmPoll::make(server.url() + path, clock);
  EXPECT_TRUE(poll.ok()) << poll.message();
  return (*poll)->ask({});
}

TEST(DcgmPoll, AsksForTheTimesOfTheSeriesBelowThePathThatIsGiven) {
  FakeApiServer server([](const FakeRequest&, FakeExchange& exchange) { exchange.respond(200, kSeries); });
  const auto samples = ask(server, "/prom/");
  ASSERT_TRUE(samples.ok()) << samples.message();
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ(samples->front().pod, "train");
  EXPECT_THAT(server.asked(), ElementsAre("GET /prom/api/v1/query?query=timestamp%28DCGM_FI_DEV_GPU_UTIL%29"));
}

TEST(DcgmPoll, WhatIsNoAnswerIsAnErrorOfOneLine) {
  const auto why = [](auto&& answer) {
    const FakeApiServer server([&](const FakeRequest&, FakeExchange& exchange) { answer(exchange); });
    const auto samples = ask(server);
    EXPECT_FALSE(samples.ok());
    EXPECT_EQ(samples.message().find('\n'), std::string::npos) << samples.message();
    return samples.message();
  };
  EXPECT_THAT(why([](FakeExchange& e) { e.respond(503, "starting\nup"); }), HasSubstr("503"));
  EXPECT_THAT(why([](FakeExchange& e) { e.respond(422, R"({"status":"error","error":"bad"})"); }), HasSubstr("422"));
  EXPECT_THAT(why([](FakeExchange& e) { e.respond(200, "<html>\n</html>"); }), HasSubstr("line 1"));
  EXPECT_NE(why([](FakeExchange& e) { e.raw("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"), e.drop(); }), "");
  EXPECT_NE(why([](FakeExchange& e) { e.raw("SSH-2.0-OpenSSH\r\n"), e.drop(); }), "");
  EXPECT_NE(why([](FakeExchange& e) { e.drop(); }), "");
}

TEST(DcgmPoll, AddressesOfAnotherFormAreRefused) {
  const SteadyClock clock;
  for (const char* url :
       {"", "prometheus:9090", "ftp://prometheus", "http://", "http://user@prometheus", "http://a?b"}) {
    const auto poll = DcgmPoll::make(url, clock);
    ASSERT_FALSE(poll.ok()) << url;
    EXPECT_THAT(poll.message(), HasSubstr("is no address; allowed: http://HOST[:PORT][/PATH]"));
  }
}

}  // namespace
}  // namespace mortise::extender
