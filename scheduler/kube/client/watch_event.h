#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::kube {

/// What tells one object, and one state of it, from others.
struct ObjectName {
  std::string ns;  ///< empty: not namespaced
  std::string name;
  std::string uid;
  std::string resource_version;

  std::string key() const { return ns + "/" + name; }
};

/// An error when there is no name, UID or resource version.
Result<ObjectName> read_object_name(const nlohmann::json& object);

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type = WatchEventType::kBookmark;
  ObjectName name;  ///< of a bookmark only the resource version
  std::shared_ptr<const nlohmann::json> object;
  int error_code = 0;      ///< of kError: what would have been the HTTP status
  std::string error_text;  ///< likewise, one line
};

/// One line of a watch: `{"type":"ADDED","object":{...}}`.
Result<WatchEvent> decode_watch_event(std::string_view line);

/// Whether one resource version was surely written before another: both are numbers, as they are in Kubernetes, and
/// this one is smaller.
bool is_older_version(std::string_view version, std::string_view than);

/// Cuts a stream into lines, however it arrives.
class LineSplitter {
 public:
  using Use = std::function<bool(std::string_view line)>;

  explicit LineSplitter(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  /// Hands on every line that is complete, without its end. False when `use` says so or a line is too long.
  bool feed(std::string_view piece, const Use& use);
  bool too_long() const { return too_long_; }
  /// Whether a line has begun that has not ended.
  bool pending() const { return !rest_.empty(); }

 private:
  std::size_t max_line_bytes_;
  std::string rest_;
  bool too_long_ = false;
};

}  // namespace mortise::kube
