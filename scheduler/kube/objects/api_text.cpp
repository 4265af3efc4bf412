#include "scheduler/kube/objects/api_text.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

using nlohmann::json;
namespace dom = simdjson::dom;

/// Objects are at most about 15 levels deep (OpenAPI schemas in custom resources aside); what is deeper is left to the
/// parser that does not recurse.
constexpr std::size_t kMaxDepth = 64;

/// A member that is read by nobody, and the key under which the object that has it stands. Maps whose keys are the
/// user's own, such as labels, never stand under these.
struct Unread {
  std::string_view parent;
  std::string_view key;
};
constexpr std::array<Unread, 30> kUnread = {{
    {"metadata", "managedFields"},
    {"spec", "affinity"},
    {"spec", "securityContext"},
    {"spec", "tolerations"},
    {"spec", "volumes"},
    {"containers", "args"},
    {"containers", "command"},
    {"containers", "env"},
    {"containers", "envFrom"},
    {"containers", "lifecycle"},
    {"containers", "livenessProbe"},
    {"containers", "ports"},
    {"containers", "readinessProbe"},
    {"containers", "securityContext"},
    {"containers", "startupProbe"},
    {"containers", "volumeMounts"},
    {"initContainers", "args"},
    {"initContainers", "command"},
    {"initContainers", "env"},
    {"initContainers", "envFrom"},
    {"initContainers", "lifecycle"},
    {"initContainers", "livenessProbe"},
    {"initContainers", "readinessProbe"},
    {"initContainers", "securityContext"},
    {"initContainers", "startupProbe"},
    {"initContainers", "volumeMounts"},
    {"status", "containerStatuses"},
    {"status", "ephemeralContainerStatuses"},
    {"status", "images"},
    {"status", "initContainerStatuses"},
}};

bool is_read(std::string_view parent, std::string_view key) {
  return std::none_of(kUnread.begin(), kUnread.end(),
                      [&](const Unread& unread) { return unread.key == key && unread.parent == parent; });
}

/// `key` is the one under which the value stands, or the array that has it.
json copy(const dom::element& value, std::string_view key) {
  switch (value.type()) {
    case dom::element_type::OBJECT: {
      json object = json::object();
      auto& members = object.get_ref<json::object_t&>();
      for (const auto& [name, member] : dom::object(value)) {
        if (is_read(key, name)) members.insert_or_assign(std::string(name), copy(member, name));
      }
      return object;
    }
    case dom::element_type::ARRAY: {
      json array = json::array();
      for (const dom::element item : dom::array(value)) array.push_back(copy(item, key));
      return array;
    }
    case dom::element_type::STRING:
      return std::string_view(value);
    case dom::element_type::INT64:
      return std::int64_t(value) < 0 ? json(std::int64_t(value)) : json(std::uint64_t(value));
    case dom::element_type::UINT64:
      return std::uint64_t(value);
    case dom::element_type::DOUBLE:
      return double(value);
    case dom::element_type::BOOL:
      return bool(value);
    case dom::element_type::NULL_VALUE:
      break;
  }
  return nullptr;
}

Result<json> parse_with(dom::parser& parser, std::string_view text, std::string_view file) {
  dom::element root;
  const bool has_room =
      parser.capacity() >= text.size() || parser.allocate(text.size(), kMaxDepth) == simdjson::SUCCESS;
  // What simdjson refuses may be sound (a number of more than 64 bits), and else is described by who refuses it, too.
  if (!has_room || parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) {
    return parse_json_text(text, file);
  }
  return copy(root, {});
}

}  // namespace

Result<json> parse_api_text(std::string_view text, std::string_view file) {
  // A parser's buffers take about 15 bytes for one of text: kept for single objects, of which there are many.
  constexpr std::size_t kKeptBytes = std::size_t{16} << 10;
  if (text.size() <= kKeptBytes) {
    thread_local dom::parser kept;
    return parse_with(kept, text, file);
  }
  dom::parser parser;
  return parse_with(parser, text, file);
}

}  // namespace mortise::kube
