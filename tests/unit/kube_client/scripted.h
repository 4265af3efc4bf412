#pragma once

#include <atomic>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/kube/client/object_feed.h"
#include "scheduler/kube/client/waiter.h"
#include "tests/support/fake_api_server.h"

namespace mortise::test {

/// Answers each request with the next step; when they are used up, asks the client to stop and says nothing more.
class Script {
 public:
  explicit Script(std::vector<FakeApiServer::Handler> steps) : steps_(std::move(steps)) {}

  FakeApiServer::Handler handler() {
    return [this](const FakeRequest& request, FakeExchange& exchange) {
      const std::size_t step = next_++;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      if (step < steps_.size()) return steps_[step](request, exchange);
      stop_.request_stop();
      exchange.wait_for_client_to_close();
    };
  }
  std::stop_token stop_token() const { return stop_.get_token(); }
  /// Those that had a step, and the one that ended the script.
  std::vector<FakeRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  std::vector<FakeApiServer::Handler> steps_;
  std::atomic<std::size_t> next_ = 0;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::vector<FakeRequest> requests_;
};

/// A clock that several threads may look at.
class SharedClock final : public Clock {
 public:
  Nanoseconds now() const override { return now_; }
  void advance(Nanoseconds by) { now_ += by; }

 private:
  std::atomic<Nanoseconds> now_ = 0;
};

/// Waits without waiting, and tells how long it would have been.
class RecordingWaiter final : public kube::Waiter {
 public:
  void wait(Nanoseconds time, const std::stop_token&) override {
    const std::lock_guard lock(mutex_);
    waits_.push_back(time);
  }
  std::vector<Nanoseconds> waits() const {
    const std::lock_guard lock(mutex_);
    return waits_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Nanoseconds> waits_;
};

/// Writes down what it is told: `start`, `listed a/b`, `complete @10`, `changed a/b`, `deleted a/b`, `at 12`.
class RecordingFeed final : public kube::ObjectFeed {
 public:
  void list_started() override { told_.push_back("start"); }
  void listed(const kube::ObjectName& name, const nlohmann::json&) override { told_.push_back("listed " + name.key()); }
  void list_completed(const std::string& version) override { told_.push_back("complete @" + version); }
  void changed(const kube::ObjectName& name, const nlohmann::json&) override {
    told_.push_back("changed " + name.key());
  }
  void deleted(const kube::ObjectName& name, const nlohmann::json&) override {
    told_.push_back("deleted " + name.key());
  }
  void progressed(const std::string& version) override { told_.push_back("at " + version); }

  const std::vector<std::string>& told() const { return told_; }

 private:
  std::vector<std::string> told_;
};

inline std::string object_text(const std::string& name, int version, const std::string& uid) {
  return R"({"metadata":{"namespace":"ns","name":")" + name + R"(","uid":")" + uid + R"(","resourceVersion":")" +
         std::to_string(version) + R"("}})";
}

/// An object whose UID goes with its name.
inline std::string object_text(const std::string& name, int version) {
  return object_text(name, version, "uid-of-" + name);
}

inline std::string event_text(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

inline std::string bookmark_text(int version) {
  return event_text("BOOKMARK",
                    R"({"kind":"Pod","metadata":{"resourceVersion":")" + std::to_string(version) + R"("}})");
}

inline std::string error_event_text(int code, const std::string& reason) {
  return event_text("ERROR", R"({"kind":"Status","status":"Failure","message":"why","reason":")" + reason +
                                 R"(","code":)" + std::to_string(code) + "}");
}

/// Answers with a page of a list; `more` is its continue token.
inline FakeApiServer::Handler page(int version, std::vector<std::string> objects, const std::string& more = {}) {
  std::string items;
  for (const std::string& object : objects) items += (items.empty() ? "" : ",") + object;
  const std::string body = R"({"kind":"PodList","metadata":{"resourceVersion":")" + std::to_string(version) +
                           R"(","continue":")" + more + R"("},"items":[)" + items + "]}";
  return [body](const FakeRequest&, FakeExchange& exchange) { exchange.respond(200, body); };
}

/// Answers with a watch of these events, which the server ends in good order.
inline FakeApiServer::Handler watch(std::vector<std::string> events) {
  return [events = std::move(events)](const FakeRequest&, FakeExchange& exchange) {
    exchange.start_stream();
    for (const std::string& event : events) exchange.chunk(event);
    exchange.end_stream();
  };
}

/// The same, but the connection is lost.
inline FakeApiServer::Handler lost_watch(std::vector<std::string> events) {
  return [events = std::move(events)](const FakeRequest&, FakeExchange& exchange) {
    exchange.start_stream();
    for (const std::string& event : events) exchange.chunk(event);
    exchange.drop();
  };
}

inline FakeApiServer::Handler status(int code, const std::string& reason, const std::string& headers = {}) {
  return [=](const FakeRequest&, FakeExchange& exchange) { exchange.respond_status(code, reason, "why", headers); };
}

}  // namespace mortise::test
