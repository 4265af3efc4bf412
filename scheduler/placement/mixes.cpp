#include "scheduler/placement/mixes.h"

#include <algorithm>
#include <functional>

namespace mortise::placement {

std::int64_t Mix::total() const {
  std::int64_t sum = 0;
  for (const std::uint16_t count : of) sum += count;
  return sum;
}

Mix smaller(const Mix& a, const Mix& b) {
  Mix found;
  for (std::size_t k = 0; k < kMaxKinds; ++k) found.of[k] = std::min(a.of[k], b.of[k]);
  return found;
}

Mix larger(const Mix& a, const Mix& b) {
  Mix found;
  for (std::size_t k = 0; k < kMaxKinds; ++k) found.of[k] = std::max(a.of[k], b.of[k]);
  return found;
}

Mix capped_sum(const Mix& a, const Mix& b, const Mix& cap) {
  Mix found;
  for (std::size_t k = 0; k < kMaxKinds; ++k) {
    found.of[k] = static_cast<std::uint16_t>(std::min<unsigned>(cap.of[k], unsigned{a.of[k]} + unsigned{b.of[k]}));
  }
  return found;
}

Mix difference(const Mix& a, const Mix& b) {
  Mix found;
  for (std::size_t k = 0; k < kMaxKinds; ++k) found.of[k] = static_cast<std::uint16_t>(a.of[k] - b.of[k]);
  return found;
}

bool MixSums::keep_largest(Mixes& mixes) {
  if (mixes.size() < 2) return true;
  std::sort(mixes.begin(), mixes.end(), std::greater<>());
  mixes.erase(std::unique(mixes.begin(), mixes.end()), mixes.end());
  // A mix is covered only by ones before it that have more members, and mostly by the one that covered the mix before.
  std::size_t kept = 0;
  std::size_t larger = 0;
  std::int64_t most_members = 0;
  for (std::size_t i = 0; i < mixes.size(); ++i) {
    if (kept > 0 && mixes[larger].covers(mixes[i])) continue;
    const std::int64_t members = mixes[i].total();
    larger = members < most_members ? 0 : kept;
    while (larger < kept && !mixes[larger].covers(mixes[i])) ++larger;
    if (larger < kept) continue;
    most_members = std::max(most_members, members);
    mixes[kept++] = mixes[i];
  }
  mixes.resize(kept);
  if (kept <= most_) return true;
  exact_ = false;
  for (std::size_t i = 0; i < most_; ++i) mixes[i] = mixes[i * (kept - 1) / (most_ - 1)];
  mixes.resize(most_);
  return false;
}

Mixes MixSums::sum(const Mixes& a, const Mixes& b) {
  Mixes found;
  found.reserve(a.size() * b.size());
  for (const Mix& x : a) {
    for (const Mix& y : b) found.push_back(capped_sum(x, y, cap_));
  }
  keep_largest(found);
  return found;
}

Mixes MixSums::times(const Mixes& one, std::size_t count) {
  if (one.size() == 1) {
    Mix many;
    for (std::size_t k = 0; k < kMaxKinds; ++k) {
      many.of[k] = static_cast<std::uint16_t>(std::min<std::size_t>(cap_.of[k], one.front().of[k] * count));
    }
    return {many};
  }
  // By doubling: alike nodes come by the thousand.
  Mixes power = one;
  Mixes found = {Mix{}};
  for (; count > 0; count /= 2) {
    if (count % 2 == 1) found = sum(found, power);
    if (count > 1) power = sum(power, power);
  }
  return found;
}

}  // namespace mortise::placement
