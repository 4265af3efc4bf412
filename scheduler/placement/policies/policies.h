#pragma once

#include <memory>

#include "scheduler/placement/policies/options.h"
#include "scheduler/placement/policy.h"

// One maker per policy; the table is in registry.cpp.
namespace mortise::placement {

using PolicyMaker = Result<std::unique_ptr<Policy>>(PolicyOptions& options, const TypicalPods& typical);

PolicyMaker make_random;
PolicyMaker make_first_fit;
PolicyMaker make_best_fit;
PolicyMaker make_dot_product;
PolicyMaker make_gpu_packing;
PolicyMaker make_gpu_clustering;
PolicyMaker make_fgd;
PolicyMaker make_topology;

}  // namespace mortise::placement
