#include "scheduler/placement/set_quality.h"

#include <algorithm>
#include <cstddef>

namespace mortise::placement {

using topology::GpuSet;
using topology::Objective;

SetQuality::SetQuality(const topology::DeviceSets& sets, Objective objective)
    : sets_(sets), objective_(objective == Objective::kNvidia ? Objective::kBottleneck : objective) {
  const auto sizes = static_cast<std::size_t>(sets.gpus()) + 1;
  best_speed_.assign(sizes, 0);
  best_offers_.assign(sizes, 0);
  for (int size = 2; size <= sets.gpus(); ++size) {
    best_speed_[static_cast<std::size_t>(size)] = speed(sets.best(objective_, sets.all(), size));
  }
  topology::for_each_subset(sets.all(), [&](GpuSet free) {
    std::int64_t& best = best_offers_[static_cast<std::size_t>(topology::size_of(free))];
    best = std::max(best, offers(free));
  });
}

std::int64_t SetQuality::speed(GpuSet set) const {
  const topology::SetValue value = sets_.value(set);
  switch (objective_) {
    case Objective::kRing:
      return value.ring;
    case Objective::kTotal:
      return value.total;
    case Objective::kBottleneck:
    case Objective::kNvidia:
      break;
  }
  return value.bottleneck;
}

std::int64_t SetQuality::ratio(GpuSet set) const {
  const std::int64_t best = best_speed_[static_cast<std::size_t>(topology::size_of(set))];
  return best == 0 ? kFull : kFull * speed(set) / best;
}

std::int64_t SetQuality::offers(GpuSet free) const {
  std::int64_t sum = 0;
  for (const int size : {2, 4, 8}) {
    if (size > topology::size_of(free)) break;
    sum += ratio(sets_.best(objective_, free, size));
  }
  return sum;
}

std::int64_t SetQuality::rest(GpuSet free) const {
  const std::int64_t best = best_offers_[static_cast<std::size_t>(topology::size_of(free))];
  return best == 0 ? kFull : kFull * offers(free) / best;
}

}  // namespace mortise::placement
