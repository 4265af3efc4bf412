#include "scheduler/kube/client/backoff.h"

#include <algorithm>
#include <cstdint>

namespace mortise::kube {

Nanoseconds Backoff::next(Rng& rng) {
  const Nanoseconds whole = next_;
  next_ = std::min(longest_, next_ > longest_ / 2 ? longest_ : next_ * 2);
  const Nanoseconds half = whole / 2;
  return half + static_cast<Nanoseconds>(rng.below(static_cast<std::uint64_t>(whole - half) + 1));
}

}  // namespace mortise::kube
