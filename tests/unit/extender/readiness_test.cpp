#include "scheduler/extender/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "scheduler/extender/http_server.h"
#include "tests/unit/extender/raw_client.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

using testing::HasSubstr;
using Condition = Readiness::Condition;

TEST(Readiness, NothingIsReadyUntilBothStateAndLeadershipAre) {
  Readiness readiness;
  EXPECT_THAT(readiness.report(), HasSubstr("synced: "));
  EXPECT_THAT(readiness.report(), HasSubstr("\nleader: "));
  readiness.set_met(Condition::kSynced);
  EXPECT_EQ(readiness.report().find("synced"), std::string::npos);
  EXPECT_NE(readiness.obstacle(), "");
  readiness.set_met(Condition::kLeader);
  EXPECT_EQ(readiness.report(), "");
  EXPECT_EQ(readiness.obstacle(), "");
  readiness.set_unmet(Condition::kLeader, "mortise-1 holds the lease");
  EXPECT_EQ(readiness.report(), "leader: mortise-1 holds the lease\n");
  EXPECT_EQ(readiness.report("leader"), "");
  EXPECT_EQ(readiness.report("synced"), "leader: mortise-1 holds the lease\n");
  EXPECT_EQ(readiness.obstacle(), "not ready: leader: mortise-1 holds the lease");
}

TEST(Readiness, ADyingProcessIsNotReadyButStillAnswers) {
  Readiness readiness;
  readiness.set_met(Condition::kSynced);
  readiness.set_met(Condition::kLeader);
  readiness.set_unmet(Condition::kServing, "shutting down");
  EXPECT_EQ(readiness.report(), "serving: shutting down\n");
  EXPECT_EQ(readiness.obstacle(), "");
}

RawResponse exchange(const std::string& to, const std::string& request) {
  RawClient client(to);
  EXPECT_TRUE(client.send(request));
  return client.receive().value_or(RawResponse{});
}

TEST(Readiness, UntilItIsReadyTheExtenderIsAliveButAnswersErrorsOnly) {
  TestCluster cluster;
  Readiness readiness;
  std::atomic<int> asked = 0;
  const auto scheduler = HttpServer::start_scheduler(cluster.service(), {"127.0.0.1", 0},
                                                     {.readiness = &readiness, .asked = [&] { ++asked; }});
  const auto admin = HttpServer::start_admin(cluster.service(), {"127.0.0.1", 0}, {.readiness = &readiness});
  ASSERT_TRUE(scheduler.ok() && admin.ok());
  const std::string ask = post_text("/filter", R"({"Pod":{"metadata":{"uid":"u"},"spec":{"containers":[]}},)"
                                               R"("NodeNames":["big-a"]})");
  const std::string bind = post_text("/bind", R"({"PodName":"p","PodUID":"u","Node":"big-a"})");
  const auto get = [&](const std::string& path) {
    return exchange((*admin)->address(), "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_THAT(get("/readyz").body, HasSubstr("synced: the cluster is not read yet\n"));
  const RawResponse filter = exchange((*scheduler)->address(), ask);
  EXPECT_EQ(filter.status, 200);
  EXPECT_THAT(filter.body, HasSubstr(R"("Error":"not ready: synced: the cluster is not read yet"})"));
  EXPECT_THAT(exchange((*scheduler)->address(), bind).body, HasSubstr(R"("Error":"not ready: )"));
  EXPECT_EQ(asked, 2);  // verbs count, answered or not; questions about health do not
  readiness.set_met(Condition::kSynced);
  // What a replica that only waits for the lease is: not ready, but for that.
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz?exclude=leader").body, "ok\n");
  EXPECT_EQ(get("/readyz?exclude=synced").status, 503);
  EXPECT_EQ(get("/readyz?exclude=lease").status, 400);
  readiness.set_met(Condition::kLeader);
  EXPECT_EQ(get("/readyz").body, "ok\n");
  EXPECT_THAT(exchange((*scheduler)->address(), ask).body, HasSubstr(R"("NodeNames":["big-a"])"));
}

}  // namespace
}  // namespace mortise::extender
