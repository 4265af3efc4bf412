#pragma once

#include <vector>

#include "scheduler/topology/numa_mask.h"

namespace mortise::topology {

/// One NUMA placement that a provider offers for one resource.
struct Hint {
  NumaMask mask = kAnyNuma;
  bool preferred = false;

  friend bool operator==(const Hint&, const Hint&) = default;
};

/// All that one resource offers. The order is of no meaning: merging compares masks by a total order.
using HintList = std::vector<Hint>;

/// What a provider without an opinion means (kubelet: a nil list, or no entry at all).
inline HintList no_preference() {
  return {{kAnyNuma, true}};
}

/// What a provider means that wants alignment and finds no place (kubelet: an empty list).
inline HintList no_placement() {
  return {{kAnyNuma, false}};
}

}  // namespace mortise::topology
