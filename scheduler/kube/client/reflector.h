#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "scheduler/base/clock.h"
#include "scheduler/base/rng.h"
#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/client/backoff.h"
#include "scheduler/kube/client/object_feed.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::kube {

struct ReflectorOptions {
  std::string path;  ///< of the collection: `/api/v1/pods`, or what resource_path() makes
  std::string field_selector = {};
  std::string label_selector = {};
  bool optional = false;  ///< the type may not exist (a custom resource): then there simply are no objects

  std::size_t page_size = 500;
  Nanoseconds page_timeout = 60 * kSecond;
  Nanoseconds watch_time = 300 * kSecond;     ///< a watch is asked to last this long, or up to twice as long
  Nanoseconds watch_silence = 150 * kSecond;  ///< bookmarks come about once a minute; after this long none will
  Nanoseconds first_wait = 800'000'000;       ///< after a failure
  Nanoseconds longest_wait = 30 * kSecond;    ///< after many in a row
  Nanoseconds absent_wait = 60 * kSecond;     ///< until an absent type is asked for again
  std::size_t max_event_bytes = std::size_t{16} << 20;
};

struct ReflectorStatus {
  bool synced = false;           ///< a list was complete, at least once
  bool absent = false;           ///< the type does not exist; it has no objects then
  std::string resource_version;  ///< up to which everything has been told
  Nanoseconds heard_at = 0;      ///< when the server last sent anything, by the injected clock
  std::uint64_t lists = 0;       ///< complete ones
  std::uint64_t pages = 0;       ///< of lists, complete or not
  std::uint64_t watches = 0;     ///< begun
  std::uint64_t events = 0;      ///< added, modified, deleted
  std::uint64_t expired = 0;     ///< the server had forgotten our version or page (410)
  std::uint64_t gaps = 0;        ///< a malformed event, or one that does not follow from those before
  std::uint64_t failures = 0;    ///< other errors: of the network, of the server
  std::string last_error;        ///< one line; stays after recovery
};

/// Keeps a feed up to date with one resource type: lists it in pages, then watches it from the version of the list, and
/// lists again whenever events may have been missed. Lists read the latest state, never an API server's older cache.
class Reflector {
 public:
  /// `client`, `feed`, `clock` and `waiter` must outlive it. `seed` draws waiting times.
  Reflector(ApiClient& client, ObjectFeed& feed, ReflectorOptions options, const Clock& clock, Waiter& waiter,
            std::uint64_t seed);

  /// Works until stop is asked for. Once only, on one thread.
  void run(const std::stop_token& stop);

  /// Any thread may ask.
  bool synced() const;
  ReflectorStatus status() const;

 private:
  /// What to do next.
  struct Next {
    enum class Step { kGoOn, kRetry, kList, kAbsent } step = Step::kGoOn;
    std::optional<Nanoseconds> at_least = {};  ///< wait no shorter, the server says
  };

  Next list(const std::stop_token& stop);
  Next list_pages(std::size_t page_size, const std::stop_token& stop);
  Next take_page(const std::string& body, std::string& continue_token);
  Next list_failed(const ApiResult& result, bool in_continuation);
  void completed(std::string resource_version);
  Next type_is_absent();

  Next watch(const std::stop_token& stop);
  Next watch_ended(const ApiResult& result, bool in_middle_of_event);
  bool take_line(std::string_view line, std::optional<Next>& next);
  std::optional<Next> take_event(const WatchEvent& event);
  std::optional<Next> take_error(const WatchEvent& event);
  const char* contradiction(const WatchEvent& event) const;

  Next failed(const std::string& why, std::uint64_t ReflectorStatus::*counter, Next next);
  void wait_for(const Next& next, const std::stop_token& stop);
  void update(const auto& change) {
    const std::lock_guard lock(mutex_);
    change(status_);
  }

  ApiClient& client_;
  ObjectFeed& feed_;
  const ReflectorOptions options_;
  const Clock& clock_;
  Waiter& waiter_;
  Rng rng_;
  Backoff backoff_;
  std::string version_;                                  // empty: a list is due
  std::unordered_map<std::string, std::string> known_;   // key -> UID, of the objects that exist
  std::unordered_map<std::string, std::string> listed_;  // of a list that is not complete
  mutable std::mutex mutex_;
  ReflectorStatus status_;  // guarded by mutex_
};

}  // namespace mortise::kube
