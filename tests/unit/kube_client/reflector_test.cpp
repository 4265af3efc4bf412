#include "scheduler/kube/client/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/kube_client/scripted.h"
#include "tests/unit/kube_client/test_client.h"

namespace mortise::kube {
namespace {

using test::bookmark_text;
using test::error_event_text;
using test::event_text;
using test::FakeApiServer;
using test::FakeExchange;
using test::FakeRequest;
using test::lost_watch;
using test::object_text;
using test::page;
using test::status;
using test::watch;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

constexpr Nanoseconds kMs = kSecond / 1000;

/// A reflector on a server that follows a script. run() returns when the script is at its end.
class ReflectorTest : public testing::Test {
 protected:
  void run(std::vector<FakeApiServer::Handler> steps) {
    script_ = std::make_unique<test::Script>(std::move(steps));
    server_ = std::make_unique<FakeApiServer>(script_->handler());
    client_ = test::make_client(*server_);
    reflector_ = std::make_unique<Reflector>(*client_, feed_, options_, clock_, waiter_, /*seed=*/7);
    reflector_->run(script_->stop_token());
  }

  std::vector<std::string> told() const { return feed_.told(); }
  std::vector<FakeRequest> requests() const { return script_->requests(); }
  /// `list` or `watch VERSION`, for each request.
  std::vector<std::string> asked() const {
    std::vector<std::string> all;
    for (const FakeRequest& request : requests()) {
      const bool watching = request.parameter("watch") == "true";
      all.push_back(watching ? "watch " + request.parameter("resourceVersion") : "list");
    }
    return all;
  }

  /// A server that ends watches only after they have lasted.
  FakeApiServer::Handler long_watch(std::vector<std::string> events) {
    return [this, events = std::move(events)](const FakeRequest& request, FakeExchange& exchange) {
      clock_.advance(60 * kSecond);
      watch(events)(request, exchange);
    };
  }

  ReflectorOptions options_ = {.path = "/api/v1/pods"};
  test::SharedClock clock_;
  test::RecordingWaiter waiter_;
  test::RecordingFeed feed_;
  std::unique_ptr<test::Script> script_;
  std::unique_ptr<FakeApiServer> server_;
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<Reflector> reflector_;
};

TEST_F(ReflectorTest, ListsInPagesThenWatchesFromTheListsVersion) {
  options_.page_size = 2;
  options_.field_selector = "spec.nodeName!=";
  options_.label_selector = "a in (b,c)";
  run({page(10, {object_text("a", 3), object_text("b", 4)}, "t&1"), page(10, {object_text("c", 5)})});
  EXPECT_THAT(told(), ElementsAre("start", "listed ns/a", "listed ns/b", "listed ns/c", "complete @10"));
  EXPECT_THAT(asked(), ElementsAre("list", "list", "watch 10"));
  for (const FakeRequest& request : requests()) {
    EXPECT_EQ(request.path(), "/api/v1/pods");
    EXPECT_EQ(request.parameter("fieldSelector"), "spec.nodeName!=");
    EXPECT_EQ(request.parameter("labelSelector"), "a in (b,c)");
  }
  EXPECT_EQ(requests()[0].parameter("limit"), "2");
  EXPECT_EQ(requests()[0].parameter("continue"), "");
  // The latest state, not whatever a cache holds.
  EXPECT_EQ(requests()[0].parameter("resourceVersion"), "");
  EXPECT_EQ(requests()[1].parameter("continue"), "t&1");
  EXPECT_EQ(requests()[2].parameter("allowWatchBookmarks"), "true");
  EXPECT_THAT(std::stoi(requests()[2].parameter("timeoutSeconds")), AllOf(Ge(300), Le(600)));
  const ReflectorStatus now = reflector_->status();
  EXPECT_TRUE(now.synced);
  EXPECT_EQ(now.resource_version, "10");
  EXPECT_EQ(now.lists, 1U);
  EXPECT_EQ(now.pages, 2U);
  EXPECT_THAT(waiter_.waits(), IsEmpty());
}

TEST_F(ReflectorTest, AnEmptyListIsAList) {
  run({[](const FakeRequest&, FakeExchange& exchange) {
    exchange.respond(200, R"({"metadata":{"resourceVersion":"10"},"items":null})");
  }});
  EXPECT_THAT(told(), ElementsAre("start", "complete @10"));
  EXPECT_TRUE(reflector_->synced());
}

TEST_F(ReflectorTest, EventsAreToldInOrderHoweverTheyArrive) {
  const std::string all = event_text("ADDED", object_text("b", 11)) + event_text("MODIFIED", object_text("a", 12)) +
                          "\n" + bookmark_text(15) + event_text("DELETED", object_text("b", 16));
  run({page(10, {object_text("a", 3)}), [&](const FakeRequest&, FakeExchange& exchange) {
         exchange.start_stream();
         for (std::size_t at = 0; at < all.size(); at += 7) exchange.chunk(all.substr(at, 7));
         exchange.end_stream();
       }});
  EXPECT_THAT(told(), ElementsAre("start", "listed ns/a", "complete @10", "changed ns/b", "at 11", "changed ns/a",
                                  "at 12", "at 15", "deleted ns/b", "at 16"));
  EXPECT_THAT(asked(), ElementsAre("list", "watch 10", "watch 16"));
  EXPECT_EQ(reflector_->status().events, 3U);
}

TEST_F(ReflectorTest, AnExpiredPageTokenBeginsTheListAnewWithLargerPages) {
  options_.page_size = 2;
  run({page(10, {object_text("a", 3), object_text("b", 4)}, "t1"), status(410, "Expired"),
       page(20, {object_text("b", 4), object_text("c", 15)})});
  EXPECT_THAT(told(), ElementsAre("start", "listed ns/a", "listed ns/b", "start", "listed ns/b", "listed ns/c",
                                  "complete @20"));
  EXPECT_EQ(requests()[2].parameter("continue"), "");
  EXPECT_EQ(requests()[2].parameter("limit"), "4");
  EXPECT_THAT(waiter_.waits(), IsEmpty());
  EXPECT_EQ(reflector_->status().expired, 1U);
}

TEST_F(ReflectorTest, ItIsNotSyncedBeforeTheLastPage) {
  bool synced_early = false;
  run({page(10, {object_text("a", 3)}, "t1"), [&](const FakeRequest& request, FakeExchange& exchange) {
         synced_early = reflector_->synced();
         page(10, {})(request, exchange);
       }});
  EXPECT_FALSE(synced_early);
  EXPECT_TRUE(reflector_->synced());
}

TEST_F(ReflectorTest, AVersionTooOldToWatchIsListedAnew) {
  run({page(10, {object_text("a", 3)}), status(410, "Expired"), page(50, {object_text("b", 40)})});
  EXPECT_THAT(told(), ElementsAre("start", "listed ns/a", "complete @10", "start", "listed ns/b", "complete @50"));
  EXPECT_EQ(reflector_->status().expired, 1U);
  EXPECT_TRUE(reflector_->synced());
}

TEST_F(ReflectorTest, TheSameAsAnEventWithinTheWatch) {
  run({page(10, {}), watch({event_text("ADDED", object_text("a", 11)), error_event_text(410, "Expired")}),
       page(50, {})});
  EXPECT_THAT(told(), ElementsAre("start", "complete @10", "changed ns/a", "at 11", "start", "complete @50"));
  EXPECT_THAT(asked(), ElementsAre("list", "watch 10", "list", "watch 50"));
  EXPECT_EQ(reflector_->status().expired, 1U);
}

TEST_F(ReflectorTest, AfterALostConnectionTheWatchGoesOnBehindTheLastWholeEvent) {
  const std::string cut = event_text("ADDED", object_text("c", 13));
  run({page(10, {}), lost_watch({event_text("ADDED", object_text("a", 11)), bookmark_text(12), cut.substr(0, 30)}),
       watch({event_text("ADDED", object_text("c", 13))})});
  EXPECT_THAT(told(), ElementsAre("start", "complete @10", "changed ns/a", "at 11", "at 12", "changed ns/c", "at 13"));
  EXPECT_THAT(asked(), ElementsAre("list", "watch 10", "watch 12", "watch 13"));
  EXPECT_EQ(reflector_->status().lists, 1U);
}

TEST_F(ReflectorTest, WhatCannotBeTheNextEventIsAGapAndListedAnew) {
  const std::string wrong[] = {
      "{\"type\":\"ADDED\",\"object\":{\n",
      "[]\n",
      event_text("RENAMED", object_text("a", 11)),
      event_text("ADDED", "null"),
      event_text("ADDED", R"({"metadata":{"name":"b","uid":"u"}})"),
      event_text("ADDED", R"({"metadata":{"name":"b","resourceVersion":"11"}})"),
      event_text("BOOKMARK", "{}"),
      event_text("MODIFIED", object_text("b", 11)),            // never added
      event_text("DELETED", object_text("b", 11)),             // never added
      event_text("ADDED", object_text("a", 11, "other uid")),  // never deleted
      event_text("MODIFIED", object_text("a", 9)),             // older than the list
      bookmark_text(9),
      event_text("ADDED", object_text("b", 11)).substr(0, 20),  // the watch ends within it
  };
  for (const std::string& line : wrong) {
    feed_ = {};
    run({page(10, {object_text("a", 3)}), watch({line}), page(20, {})});
    EXPECT_THAT(told(), ElementsAre("start", "listed ns/a", "complete @10", "start", "complete @20")) << line;
    EXPECT_EQ(reflector_->status().gaps, 1U) << line;
    EXPECT_THAT(reflector_->status().last_error, HasSubstr("/api/v1/pods: ")) << line;
    EXPECT_EQ(reflector_->status().last_error.find('\n'), std::string::npos);
  }
}

TEST_F(ReflectorTest, AnEventBeyondTheSizeLimitIsAGap) {
  options_.max_event_bytes = 200;
  run({page(10, {}), watch({event_text("ADDED", object_text(std::string(200, 'x'), 11))}), page(20, {})});
  EXPECT_THAT(asked(), ElementsAre("list", "watch 10", "list", "watch 20"));
  EXPECT_EQ(reflector_->status().gaps, 1U);
}

TEST_F(ReflectorTest, WaitsDoubleWhileTheServerFails) {
  options_.longest_wait = 4 * kSecond;
  run({status(500, "InternalError"), status(503, "ServiceUnavailable"), status(403, "Forbidden"),
       status(401, "Unauthorized"), status(500, "InternalError"), page(10, {})});
  // Each between half and the whole of 0.8, 1.6, 3.2, 4, 4 seconds.
  EXPECT_THAT(waiter_.waits(), ElementsAre(AllOf(Ge(400 * kMs), Le(800 * kMs)), AllOf(Ge(800 * kMs), Le(1600 * kMs)),
                                           AllOf(Ge(1600 * kMs), Le(3200 * kMs)), AllOf(Ge(2000 * kMs), Le(4000 * kMs)),
                                           AllOf(Ge(2000 * kMs), Le(4000 * kMs))));
  EXPECT_EQ(reflector_->status().failures, 5U);
  EXPECT_EQ(reflector_->status().last_error, "500 InternalError: why");
  EXPECT_TRUE(reflector_->synced());
}

TEST_F(ReflectorTest, AListThatFailsOnTheWayIsNotTold) {
  run({page(10, {object_text("a", 3)}, "t1"), status(500, "InternalError"), page(20, {})});
  EXPECT_THAT(told(), ElementsAre("start", "listed ns/a", "start", "complete @20"));
}

TEST_F(ReflectorTest, WhatIsNoListIsAFailure) {
  for (const char* body : {"", "[]", "{}", R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[{}]})", R"({"metadata":{},"items":[]})"}) {
    feed_ = {};
    run({[&](const FakeRequest&, FakeExchange& exchange) { exchange.respond(200, body); }, page(20, {})});
    EXPECT_THAT(told(), ElementsAre("start", "start", "complete @20")) << body;
    EXPECT_EQ(reflector_->status().failures, 1U) << body;
  }
}

TEST_F(ReflectorTest, TheServersRetryAfterIsKept) {
  run({status(429, "TooManyRequests", "Retry-After: 9\r\n"), page(10, {}),
       status(429, "TooManyRequests", "Retry-After: 5\r\n")});
  EXPECT_THAT(waiter_.waits(), ElementsAre(9 * kSecond, 5 * kSecond));
  EXPECT_THAT(asked(), ElementsAre("list", "list", "watch 10", "watch 10"));
}

TEST_F(ReflectorTest, AServerErrorWithinAWatchDoesNotCostAList) {
  run({page(10, {}), watch({error_event_text(500, "InternalError")}), watch({error_event_text(429, "TooManyRequests")}),
       status(500, "InternalError"), watch({error_event_text(400, "BadRequest")}), page(20, {})});
  EXPECT_THAT(asked(), ElementsAre("list", "watch 10", "watch 10", "watch 10", "watch 10", "list", "watch 20"));
}

TEST_F(ReflectorTest, AWatchThatLastedIsFollowedByTheNextAtOnce) {
  run({page(10, {}), long_watch({bookmark_text(20)}), long_watch({bookmark_text(30)})});
  EXPECT_THAT(asked(), ElementsAre("list", "watch 10", "watch 20", "watch 30"));
  EXPECT_THAT(waiter_.waits(), IsEmpty());
}

TEST_F(ReflectorTest, WatchesThatEndAtOnceAreNotAskedForInALoop) {
  run({page(10, {}), watch({}), watch({}), watch({})});
  EXPECT_THAT(waiter_.waits(), ElementsAre(Ge(400 * kMs), Ge(800 * kMs), Ge(1600 * kMs)));
}

TEST_F(ReflectorTest, AWatchThatLastedMakesWaitsShortAgain) {
  run({page(10, {}), watch({}), watch({}), long_watch({}), watch({})});
  EXPECT_THAT(waiter_.waits(), ElementsAre(Ge(400 * kMs), Ge(800 * kMs), Le(800 * kMs)));
}

TEST_F(ReflectorTest, AHalfDeadConnectionIsNoticedAndReplaced) {
  options_.watch_silence = 50 * kMs;
  run({page(10, {}), [](const FakeRequest&, FakeExchange& exchange) {
         exchange.start_stream();
         exchange.chunk(bookmark_text(11));
         exchange.wait_for_client_to_close();
       }});
  EXPECT_THAT(asked(), ElementsAre("list", "watch 10", "watch 11"));
  EXPECT_THAT(waiter_.waits(), IsEmpty());
}

TEST_F(ReflectorTest, AnOptionalTypeThatIsAbsentHasNoObjectsAndIsAskedForSlowly) {
  options_.optional = true;
  run({status(404, "NotFound"), status(404, "NotFound")});
  EXPECT_THAT(told(), ElementsAre("start", "start", "complete @", "start", "start"));
  EXPECT_TRUE(reflector_->synced());
  EXPECT_TRUE(reflector_->status().absent);
  EXPECT_THAT(waiter_.waits(), ElementsAre(60 * kSecond, 60 * kSecond));
}

TEST_F(ReflectorTest, AnOptionalTypeMayComeAndGo) {
  options_.optional = true;
  run({status(404, "NotFound"), page(10, {object_text("a", 3)}), status(404, "NotFound"), status(404, "NotFound")});
  EXPECT_THAT(told(), ElementsAre("start", "start", "complete @", "start", "listed ns/a", "complete @10", "start",
                                  "start", "complete @", "start"));
  EXPECT_THAT(asked(), ElementsAre("list", "list", "watch 10", "list", "list"));
  EXPECT_TRUE(reflector_->status().absent);
}

TEST_F(ReflectorTest, ATypeThatMustExistIsNotAbsent) {
  run({status(404, "NotFound")});
  EXPECT_FALSE(reflector_->synced());
  EXPECT_FALSE(reflector_->status().absent);
  EXPECT_EQ(reflector_->status().last_error, "404 NotFound: why");
}

TEST_F(ReflectorTest, HeardAtIsWhenTheServerLastSpoke) {
  run({[&](const FakeRequest& request, FakeExchange& exchange) {
         clock_.advance(5 * kSecond);
         page(10, {})(request, exchange);
       },
       [&](const FakeRequest&, FakeExchange& exchange) {
         clock_.advance(2 * kSecond);
         exchange.start_stream();
         exchange.chunk(bookmark_text(11));
         exchange.drop();
       }});
  EXPECT_EQ(reflector_->status().heard_at, 7 * kSecond);
}

}  // namespace
}  // namespace mortise::kube
