#pragma once

#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"

namespace mortise::kube {

/// A time as Kubernetes writes it (RFC 3339, `2025-01-31T23:59:59Z`), since 1970. Years 1970 to 2261.
Result<Nanoseconds> parse_time(std::string_view text);

}  // namespace mortise::kube
