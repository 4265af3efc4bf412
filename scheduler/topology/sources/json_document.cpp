#include "scheduler/topology/sources/json_document.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/base/json_depth.h"

namespace mortise::topology {
namespace {

constexpr int kMaxDepth = 32;

std::string line_of(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return std::to_string(1 + std::count(text.begin(), end, '\n'));
}

}  // namespace

Result<nlohmann::json> parse_json_document(std::string_view text, std::string_view file) {
  if (const auto deep = nested_deeper(text, kMaxDepth)) {
    return Error{std::string(file) + ":" + line_of(text, *deep) + ": nested deeper than " + std::to_string(kMaxDepth) +
                 " levels"};
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    // The byte count stands behind the offending one.
    const std::size_t byte = error.byte > 0 ? error.byte - 1 : 0;
    return Error{std::string(file) + ":" + line_of(text, byte) + ": not JSON"};
  }
}

}  // namespace mortise::topology
