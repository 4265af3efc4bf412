#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"

namespace mortise::placement {

/// What a pod asks for, as placement sees it; interned.
struct PodShape {
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t gpus = 0;
  MilliGpu gpu_milli = kWholeGpu;  ///< share of each GPU
  std::vector<ModelId> models;     ///< allowed models, ascending; empty: any

  bool wants_gpu() const { return gpus > 0; }
  bool is_share() const { return gpus > 0 && gpu_milli < kWholeGpu; }
  MilliGpu gpu_total() const { return gpus * gpu_milli; }
  bool allows(ModelId model) const;
  friend bool operator==(const PodShape&, const PodShape&) = default;
};

}  // namespace mortise::placement
