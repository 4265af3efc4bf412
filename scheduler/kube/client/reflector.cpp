#include "scheduler/kube/client/reflector.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/kube/client/resource_path.h"
#include "scheduler/kube/objects/api_text.h"
#include "scheduler/kube/objects/field.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

/// A watch that lasted this long was no failure, however it ended.
constexpr Nanoseconds kSteadyWatch = 10 * kSecond;
/// The server ends a watch itself; a connection that outlives that by so much is dead.
constexpr Nanoseconds kWatchGrace = 30 * kSecond;
constexpr int kListAttempts = 4;

}  // namespace

Reflector::Reflector(ApiClient& client, ObjectFeed& feed, ReflectorOptions options, const Clock& clock, Waiter& waiter,
                     std::uint64_t seed)
    : client_(client),
      feed_(feed),
      options_(std::move(options)),
      clock_(clock),
      waiter_(waiter),
      rng_(seed),
      backoff_(options_.first_wait, options_.longest_wait) {}

bool Reflector::synced() const {
  const std::lock_guard lock(mutex_);
  return status_.synced;
}

ReflectorStatus Reflector::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Reflector::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Next next = version_.empty() ? list(stop) : watch(stop);
    if (next.step == Next::Step::kList) version_.clear();
    if (!stop.stop_requested()) wait_for(next, stop);
  }
}

void Reflector::wait_for(const Next& next, const std::stop_token& stop) {
  switch (next.step) {
    case Next::Step::kGoOn:
      return;
    case Next::Step::kRetry:
    case Next::Step::kList:
      waiter_.wait(std::max(backoff_.next(rng_), next.at_least.value_or(0)), stop);
      return;
    case Next::Step::kAbsent:
      waiter_.wait(options_.absent_wait, stop);
      return;
  }
}

Reflector::Next Reflector::failed(const std::string& why, std::uint64_t ReflectorStatus::*counter, Next next) {
  update([&](ReflectorStatus& status) {
    ++(status.*counter);
    status.last_error = why;
  });
  return next;
}

Reflector::Next Reflector::list(const std::stop_token& stop) {
  std::size_t page_size = options_.page_size;
  Next next;
  for (int attempt = 1; attempt <= kListAttempts; ++attempt) {
    feed_.list_started();
    listed_.clear();
    next = list_pages(page_size, stop);
    // A page token expired on the way: from the start, in fewer pages, so that it takes less time.
    if (next.step != Next::Step::kList) return next;
    page_size *= 2;
  }
  return next;
}

Reflector::Next Reflector::list_pages(std::size_t page_size, const std::stop_token& stop) {
  std::string continue_token;
  do {
    const std::string path = with_query(options_.path, {{"limit", std::to_string(page_size)},
                                                        {"continue", continue_token},
                                                        {"fieldSelector", options_.field_selector},
                                                        {"labelSelector", options_.label_selector}});
    CallOptions call;
    call.timeout = options_.page_timeout;
    call.stop = stop;
    const ApiResult result = client_.get(path, call);
    if (!result.ok()) return list_failed(result, !continue_token.empty());
    const Next next = take_page(result.response()->body, continue_token);
    if (next.step != Next::Step::kGoOn) return next;
  } while (!continue_token.empty());
  return {};
}

Reflector::Next Reflector::list_failed(const ApiResult& result, bool in_continuation) {
  if (const TransportError* error = result.transport_error(); error != nullptr && error->stopped) return {};
  const ApiResponse* response = result.response();
  if (response != nullptr) {
    update([&](ReflectorStatus& status) { status.heard_at = clock_.now(); });
    if (response->status == 404 && options_.optional) return type_is_absent();
    if (response->status == 410 && in_continuation) {
      return failed(result.describe(), &ReflectorStatus::expired, {Next::Step::kList});
    }
  }
  return failed(result.describe(), &ReflectorStatus::failures,
                {Next::Step::kRetry, response != nullptr ? response->retry_after : std::nullopt});
}

/// Tells of the objects of one page; `continue_token` is empty after the last.
Reflector::Next Reflector::take_page(const std::string& body, std::string& continue_token) {
  const Next again{Next::Step::kRetry};
  const Result<json> document = parse_api_text(body, options_.path);
  if (!document) return failed(document.message(), &ReflectorStatus::failures, again);
  std::optional<Error> mistake;
  const Field root(*document, mistake);
  const Field metadata = root.member("metadata");
  continue_token = metadata.member("continue").text();
  std::string version = metadata.member("resourceVersion").text();
  root.member("items").items();  // is it an array?
  if (version.empty() && !mistake) mistake = Error{"a list without metadata.resourceVersion"};
  if (mistake) return failed(options_.path + ": " + mistake->message, &ReflectorStatus::failures, again);

  update([&](ReflectorStatus& status) {
    status.heard_at = clock_.now();
    ++status.pages;
  });
  if (const auto items = document->find("items"); items != document->end()) {
    for (const json& object : *items) {
      Result<ObjectName> name = read_object_name(object);
      if (!name) return failed(options_.path + ": " + name.message(), &ReflectorStatus::failures, again);
      listed_[name->key()] = name->uid;
      feed_.listed(*name, object);
    }
  }
  if (continue_token.empty()) completed(std::move(version));
  return {};
}

void Reflector::completed(std::string resource_version) {
  known_ = std::exchange(listed_, {});
  version_ = std::move(resource_version);
  feed_.list_completed(version_);
  update([&](ReflectorStatus& status) {
    status.synced = true;
    status.absent = false;
    status.resource_version = version_;
    ++status.lists;
  });
}

Reflector::Next Reflector::type_is_absent() {
  const bool known_already = status().absent;
  backoff_.reset();
  if (!known_already) {
    known_.clear();
    feed_.list_started();
    feed_.list_completed({});
    update([&](ReflectorStatus& status) {
      status.synced = true;
      status.absent = true;
      status.resource_version.clear();
    });
  }
  return {Next::Step::kAbsent};
}

Reflector::Next Reflector::watch(const std::stop_token& stop) {
  // Drawn, so that the watches of many clients that began together do not all end together.
  const auto seconds = static_cast<std::uint64_t>(std::max<Nanoseconds>(options_.watch_time / kSecond, 1));
  const std::uint64_t lasting = seconds + rng_.below(seconds);
  const std::string path = with_query(options_.path, {{"watch", "true"},
                                                      {"allowWatchBookmarks", "true"},
                                                      {"resourceVersion", version_},
                                                      {"timeoutSeconds", std::to_string(lasting)},
                                                      {"fieldSelector", options_.field_selector},
                                                      {"labelSelector", options_.label_selector}});
  StreamOptions call;
  call.timeout = static_cast<Nanoseconds>(lasting) * kSecond + kWatchGrace;
  call.silence = options_.watch_silence;
  call.stop = stop;
  const Nanoseconds began = clock_.now();
  update([](ReflectorStatus& status) { ++status.watches; });

  LineSplitter lines(options_.max_event_bytes);
  std::optional<Next> next;
  const ApiResult result = client_.stream(
      path,
      [&](std::string_view piece) {
        update([&](ReflectorStatus& status) { status.heard_at = clock_.now(); });
        return lines.feed(piece, [&](std::string_view line) { return take_line(line, next); });
      },
      call);
  const bool steady = clock_.now() - began >= kSteadyWatch;
  if (steady) backoff_.reset();
  if (next) return *next;
  if (lines.too_long()) {
    return failed(options_.path + ": an event of more than " + std::to_string(options_.max_event_bytes) + " bytes",
                  &ReflectorStatus::gaps, {Next::Step::kList});
  }
  if (result.ok() && !lines.pending() && steady) return {};
  return watch_ended(result, lines.pending());
}

Reflector::Next Reflector::watch_ended(const ApiResult& result, bool in_middle_of_event) {
  if (const TransportError* error = result.transport_error()) {
    if (error->stopped || error->silent) return {};
    // The events told so far are whole; the watch goes on after the last of them.
    return failed(error->message, &ReflectorStatus::failures, {Next::Step::kRetry});
  }
  const ApiResponse& response = *result.response();
  if (response.ok()) {
    if (!in_middle_of_event) return {Next::Step::kRetry};
    return failed(options_.path + ": the watch ended within an event", &ReflectorStatus::gaps, {Next::Step::kList});
  }
  const std::string why = options_.path + ": " + result.describe();
  if (response.status == 410) return failed(why, &ReflectorStatus::expired, {Next::Step::kList});
  const bool later =
      response.status == 401 || response.status == 403 || response.status == 429 || response.status >= 500;
  return failed(why, &ReflectorStatus::failures,
                {later ? Next::Step::kRetry : Next::Step::kList, response.retry_after});
}

/// False ends the watch; `next` then says what follows.
bool Reflector::take_line(std::string_view line, std::optional<Next>& next) {
  const Result<WatchEvent> event = decode_watch_event(line);
  if (event) {
    next = take_event(*event);
  } else {
    next = failed(options_.path + ": " + event.message(), &ReflectorStatus::gaps, {Next::Step::kList});
  }
  return !next.has_value();
}

std::optional<Reflector::Next> Reflector::take_event(const WatchEvent& event) {
  if (event.type == WatchEventType::kError) return take_error(event);
  if (const char* why = contradiction(event)) {
    return failed(options_.path + ": " + why + " (" + event.name.key() + ")", &ReflectorStatus::gaps,
                  {Next::Step::kList});
  }
  version_ = event.name.resource_version;
  if (event.type == WatchEventType::kDeleted) {
    known_.erase(event.name.key());
    feed_.deleted(event.name, *event.object);
  } else if (event.type != WatchEventType::kBookmark) {
    known_[event.name.key()] = event.name.uid;
    feed_.changed(event.name, *event.object);
  }
  feed_.progressed(version_);
  update([&](ReflectorStatus& status) {
    status.resource_version = version_;
    if (event.type != WatchEventType::kBookmark) ++status.events;
  });
  return std::nullopt;
}

std::optional<Reflector::Next> Reflector::take_error(const WatchEvent& event) {
  const std::string why = options_.path + ": " + event.error_text;
  if (event.error_code == 410) return failed(why, &ReflectorStatus::expired, {Next::Step::kList});
  const bool later = event.error_code == 429 || event.error_code >= 500;
  return failed(why, &ReflectorStatus::failures, {later ? Next::Step::kRetry : Next::Step::kList});
}

/// Why the event cannot be the next one, or null. An API server sends every change of what it listed, in order.
const char* Reflector::contradiction(const WatchEvent& event) const {
  if (is_older_version(event.name.resource_version, version_)) return "an event older than the one before it";
  if (event.type == WatchEventType::kBookmark) return nullptr;
  const auto known = known_.find(event.name.key());
  if (known == known_.end()) return event.type == WatchEventType::kAdded ? nullptr : "an event of an unknown object";
  return known->second == event.name.uid ? nullptr : "an object was replaced without having been deleted";
}

}  // namespace mortise::kube
