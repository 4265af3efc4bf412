#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::kube {

/// Parses one JSON value; anything but blanks after it is an error, and so are more than
/// kMaxNesting levels. `file` is only for the message, which names the
/// line ("FILE:LINE: ..." or, without a file, "line LINE: ...").
Result<nlohmann::json> parse_json_text(std::string_view text, std::string_view file);

}  // namespace mortise::kube
