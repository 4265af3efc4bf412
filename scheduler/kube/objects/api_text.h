#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::kube {

/// As parse_json_text, for what an API server or kube-scheduler sends: an object, a list or a watch event. The parts of
/// objects that no decoder of ours reads (who wrote which field, volumes, probes and the like) are not in the document;
/// of a pod they are most of the text.
Result<nlohmann::json> parse_api_text(std::string_view text, std::string_view file);

}  // namespace mortise::kube
