#include "scheduler/kube/client/watch_event.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/api_text.h"
#include "scheduler/kube/objects/field.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

std::optional<WatchEventType> type_of(std::string_view text) {
  if (text == "ADDED") return WatchEventType::kAdded;
  if (text == "MODIFIED") return WatchEventType::kModified;
  if (text == "DELETED") return WatchEventType::kDeleted;
  if (text == "BOOKMARK") return WatchEventType::kBookmark;
  if (text == "ERROR") return WatchEventType::kError;
  return std::nullopt;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status read_error(const json& object, WatchEvent& event) {
  std::optional<Error> mistake;
  const Field status(object, mistake);
  const std::string reason = status.member("reason").text();
  const std::string message = status.member("message").text();
  const auto code = object.is_object() ? object.find("code") : object.end();
  if (code != object.end() && code->is_number_integer()) event.error_code = code->get<int>();
  if (mistake) return *mistake;
  event.error_text = one_line(std::to_string(event.error_code) + " " + reason + ": " + message, 1000);
  return ok_status();
}

Status read_bookmark(const json& object, WatchEvent& event) {
  std::optional<Error> mistake;
  event.name.resource_version = Field(object, mistake).member("metadata").member("resourceVersion").text();
  if (mistake) return *mistake;
  if (event.name.resource_version.empty()) return Error{"a bookmark without metadata.resourceVersion"};
  return ok_status();
}

}  // namespace

Result<ObjectName> read_object_name(const json& object) {
  std::optional<Error> mistake;
  const Field metadata = Field(object, mistake).member("metadata");
  ObjectName name;
  name.ns = metadata.member("namespace").text();
  name.name = metadata.member("name").text();
  name.uid = metadata.member("uid").text();
  name.resource_version = metadata.member("resourceVersion").text();
  if (mistake) return *mistake;
  if (name.name.empty() || name.uid.empty() || name.resource_version.empty()) {
    return Error{"an object without metadata.name, uid or resourceVersion (name " + quote(name.name) + ")"};
  }
  return name;
}

Result<WatchEvent> decode_watch_event(std::string_view line) {
  Result<json> document = parse_api_text(line, {});
  if (!document) return document.error();
  std::optional<Error> mistake;
  const std::string type_text = Field(*document, mistake).member("type").text();
  if (mistake) return *mistake;
  const std::optional<WatchEventType> type = type_of(type_text);
  if (!type) {
    return Error{"event of type " + quote(type_text) + "; known: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR"};
  }
  const auto object = document->is_object() ? document->find("object") : document->end();
  if (object == document->end() || !object->is_object()) return Error{type_text + " event without an object"};

  WatchEvent event;
  event.type = *type;
  event.object = std::make_shared<const json>(std::move(*object));
  Status read = ok_status();
  if (*type == WatchEventType::kError) {
    read = read_error(*event.object, event);
  } else if (*type == WatchEventType::kBookmark) {
    read = read_bookmark(*event.object, event);
  } else {
    Result<ObjectName> name = read_object_name(*event.object);
    if (!name) return name.error();
    event.name = *std::move(name);
  }
  if (!read) return read.error();
  return event;
}

bool is_older_version(std::string_view version, std::string_view than) {
  if (!is_number(version) || !is_number(than)) return false;
  const auto strip = [](std::string_view& digits) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  };
  strip(version);
  strip(than);
  return version.size() != than.size() ? version.size() < than.size() : version < than;
}

bool LineSplitter::feed(std::string_view piece, const Use& use) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    if (part.size() > max_line_bytes_ - std::min(rest_.size(), max_line_bytes_)) {
      too_long_ = true;
      return false;
    }
    if (end == std::string_view::npos) {
      rest_ += part;
      return true;
    }
    piece.remove_prefix(end + 1);
    if (rest_.empty()) {
      if (!part.empty() && !use(part)) return false;
      continue;
    }
    rest_ += part;
    const std::string line = std::exchange(rest_, {});
    if (!use(line)) return false;
  }
  return true;
}

}  // namespace mortise::kube
