#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::topology {

/// Parses one JSON value; anything but blanks after it is an error, and so is nesting deeper than any of our forms,
/// which would exhaust the stack of whoever walks it. Messages start with "FILE:LINE: ".
Result<nlohmann::json> parse_json_document(std::string_view text, std::string_view file);

}  // namespace mortise::topology
