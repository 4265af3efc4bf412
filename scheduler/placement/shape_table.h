#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"

namespace mortise::placement {

/// What a pod asks for, as placement sees it.
struct PodShape {
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t gpus = 0;
  MilliGpu gpu_milli = 0;       ///< share of each GPU, 1..1000; 0 when gpus is 0
  std::vector<ModelId> models;  ///< allowed models, ascending; empty: any
  AlignmentId alignment{};      ///< 0 where it cannot matter

  bool wants_gpu() const { return gpus > 0; }
  bool is_share() const { return gpus > 0 && gpu_milli < kWholeGpu; }
  MilliGpu gpu_total() const { return gpus * gpu_milli; }
  bool allows(ModelId model) const;
  friend bool operator==(const PodShape&, const PodShape&) = default;
};

/// Interns pod shapes; they are few and never forgotten.
class ShapeTable {
 public:
  ShapeId intern(const PodShape& shape);
  const PodShape& shape(ShapeId id) const { return shapes_[id.index()]; }
  std::size_t size() const { return shapes_.size(); }

 private:
  std::vector<PodShape> shapes_;
  std::unordered_multimap<std::uint64_t, ShapeId> by_hash_;
};

}  // namespace mortise::placement
