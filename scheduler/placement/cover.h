#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/placement/mixes.h"

namespace mortise::placement {

/// One domain or node that may take a part of a gang.
struct Part {
  const Mixes* room = nullptr;
  std::int64_t cost = 0;  ///< of using it, where as many parts are used either way
  bool in_use = false;    ///< the gang has members there already, so using it is no part more
};

/// What every part takes, and how many parts more are used for it.
struct Cover {
  std::vector<Mix> takes;
  std::int64_t used = 0;
};

/// How much looking around a plan may still do. Where it is used up, the roomiest parts are taken.
struct SearchBudget {
  std::int64_t steps = std::int64_t{1} << 22;
};

/// Spreads `target` over as few of the parts as possible, the last one as tight as possible, then at the least cost,
/// then over the earlier ones. With one kind, and with several as long as few mixes and parts are to be looked at,
/// fewest is meant exactly; else the roomiest parts are taken first. `weights` say what a member of each kind counts
/// for when parts are compared. Nothing: the search found no way; with one kind there is none.
std::optional<Cover> cover(std::span<const Part> parts, const Mix& target, std::span<const std::int64_t> weights,
                           SearchBudget& budget);

}  // namespace mortise::placement
