#include "scheduler/placement/shape_table.h"

#include <algorithm>

#include "scheduler/base/rng.h"

namespace mortise::placement {

bool PodShape::allows(ModelId model) const {
  return models.empty() || std::binary_search(models.begin(), models.end(), model);
}

ShapeId ShapeTable::intern(const PodShape& shape) {
  std::uint64_t h = mix64(static_cast<std::uint64_t>(shape.cpu));
  h = mix64(h ^ static_cast<std::uint64_t>(shape.memory));
  h = mix64(h ^ (static_cast<std::uint64_t>(shape.gpus) << 32) ^ static_cast<std::uint64_t>(shape.gpu_milli));
  for (const ModelId model : shape.models) h = mix64(h ^ model.value);
  if (shape.alignment != AlignmentId{}) h = mix64(h ^ shape.alignment.value);
  const auto [begin, end] = by_hash_.equal_range(h);
  const auto found =
      std::find_if(begin, end, [&](const auto& entry) { return shapes_[entry.second.index()] == shape; });
  if (found != end) return found->second;
  const ShapeId id{static_cast<std::uint32_t>(shapes_.size())};
  shapes_.push_back(shape);
  by_hash_.emplace(h, id);
  return id;
}

}  // namespace mortise::placement
