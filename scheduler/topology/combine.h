#pragma once

#include <string_view>

#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

/// Adds to `reading` what a source of lower rank knows and it does not: what is said already stays. GPUs are matched by
/// index. Where the two contradict each other (another number of GPUs, other NUMA nodes), that part of `more` is left
/// out and noted under `name`.
void combine(Reading& reading, const Reading& more, std::string_view name);

}  // namespace mortise::topology
