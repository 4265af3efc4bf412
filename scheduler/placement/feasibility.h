#pragma once

#include "scheduler/placement/decision.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/shape_table.h"

namespace mortise::placement {

/// Whether a node in this state takes a pod of this shape; otherwise the first reason that applies, those that
/// freeing something cannot mend first.
Reason feasibility(const NodeState& state, const Machine& machine, const PodShape& pod);

}  // namespace mortise::placement
