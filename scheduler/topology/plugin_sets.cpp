#include "scheduler/topology/plugin_sets.h"

#include <algorithm>
#include <array>
#include <utility>

namespace mortise::topology {
namespace {

// The policy keeps its best division in memory that it goes on writing to. Go's append starts over with a larger array
// when the 5th part is added, so in divisions of 7 and more the parts after the 5th are those of the last division
// that shares the first five: of what is left then, the lowest is joined with the highest, and so on inwards.
constexpr std::size_t kSharedFrom = 5;
constexpr std::size_t kShortestShared = 7;

// Only parts of two GPUs are ever so many: of parts of one, the policy looks at each alone.
constexpr bool is_overwritten(std::size_t parts, int size) {
  return size == 2 && parts >= kShortestShared;
}

bool comes_first(GpuSet a, GpuSet b) {
  return list_rank(a) > list_rank(b);
}

// Calls f(part) for every set of `size` GPUs of `free` that holds `required`.
template <class F>
void for_each_part(GpuSet free, GpuSet required, int size, F&& f) {
  const GpuSet others = free & ~required;
  for (GpuSet rest = others;; rest = (rest - 1) & others) {
    if (size_of(rest) + size_of(required) == size) f(rest | required);
    if (rest == 0) break;
  }
}

// See kSharedFrom.
void overwrite_shared(std::vector<GpuSet>& parts) {
  GpuSet left = 0;
  for (std::size_t i = kSharedFrom; i < parts.size(); ++i) left |= parts[i];
  const std::size_t places = 2 * (parts.size() - kSharedFrom);
  std::vector<GpuSet> order(places);  // padding is last, and empty
  std::size_t filled = 0;
  for_each_gpu(left, [&](int gpu) { order[filled++] = gpu_bit(gpu); });
  for (std::size_t i = 0; i < places / 2; ++i) parts[kSharedFrom + i] = order[i] | order[places - 1 - i];
}

}  // namespace

PluginSets::PluginSets(const SetValues& values)
    : gpus_(values.gpus()),
      sizes_(static_cast<std::size_t>(values.gpus()) + 1),
      scores_(values.count()),
      totals_(values.count() * sizes_),
      first_(totals_.size()),
      best_(totals_.size()),
      least_top_(totals_.size()) {
  for (GpuSet set = 0; set < scores_.size(); ++set) scores_[set] = static_cast<std::int32_t>(values.of(set).total);
  for (GpuSet free = 1; free < scores_.size(); ++free) {
    divide(free);
    keep_best(free);
  }
}

// Finds the best division of `free` into parts of every size, from those of smaller sets. The first part is the one
// with the lowest GPU; among equal totals the policy meets the one with the first list first. Padding is behind all
// GPUs, so a part that is filled up comes after its extensions.
void PluginSets::divide(GpuSet free) {
  struct Best {
    std::int32_t total = -1;
    std::int32_t least_top = 0;
    GpuSet first = 0;
  };
  std::array<Best, kMaxSetGpus + 1> best;
  const auto consider = [&](GpuSet part, int size) {
    Best& top = best[static_cast<std::size_t>(size)];
    const std::size_t rest = slot(free & ~part, size);
    const std::int32_t total = scores_[part] + totals_[rest];
    if (total < top.total) return;
    const std::int32_t highest = std::max(scores_[part], least_top_[rest]);
    if (total > top.total) {
      top = {total, highest, part};
      return;
    }
    top.least_top = std::min(top.least_top, highest);
    if (comes_first(part, top.first)) top.first = part;
  };
  // By number of members, the sizes a part is filled up to.
  std::array<std::vector<int>, kMaxSetGpus + 1> filled_up;
  for (int size = 2; size <= gpus_; ++size) {
    if (const int left = size_of(free) % size; left != 0) filled_up[static_cast<std::size_t>(left)].push_back(size);
  }
  const GpuSet lowest = lowest_gpu(free);
  const GpuSet others = free & ~lowest;
  for (GpuSet rest = others;; rest = (rest - 1) & others) {
    const GpuSet part = rest | lowest;
    const int members = size_of(part);
    consider(part, members);
    for (const int size : filled_up[static_cast<std::size_t>(members)]) consider(part, size);
    if (rest == 0) break;
  }
  for (int size = 1; size <= gpus_; ++size) {
    const Best& top = best[static_cast<std::size_t>(size)];
    totals_[slot(free, size)] = top.total;
    least_top_[slot(free, size)] = top.least_top;
    first_[slot(free, size)] = static_cast<std::uint16_t>(top.first);
  }
}

void PluginSets::keep_best(GpuSet free) {
  for (int size = 1; size <= gpus_; ++size) {
    GpuSet best = first_[slot(free, size)];
    if (is_overwritten(static_cast<std::size_t>(size_of(free) + 1) / 2, size)) {
      best = choose(parts_of(free, size), 0, size).set;
    } else if (const GpuSet other = best_[slot(free & ~best, size)]; other != 0 && scores_[other] > scores_[best]) {
      best = other;
    }
    best_[slot(free, size)] = static_cast<std::uint16_t>(best);
  }
}

std::vector<GpuSet> PluginSets::parts_of(GpuSet free, int size) const {
  std::vector<GpuSet> parts;
  for (GpuSet left = free; left != 0; left &= ~parts.back()) parts.push_back(first_[slot(left, size)]);
  return parts;
}

// The first best division of `free` among those that hold `part`: the others' order does not depend on it.
std::vector<GpuSet> PluginSets::parts_with(GpuSet part, GpuSet free) const {
  std::vector<GpuSet> parts = parts_of(free & ~part, size_of(part));
  const auto later = [](GpuSet a, GpuSet b) { return lowest_gpu(a) < lowest_gpu(b); };
  parts.insert(std::lower_bound(parts.begin(), parts.end(), part, later), part);
  return parts;
}

// The policy's last step: the first of the parts with the highest score among those that hold `required`.
PluginPick PluginSets::choose(std::vector<GpuSet> parts, GpuSet required, int count) const {
  if (is_overwritten(parts.size(), count)) overwrite_shared(parts);
  GpuSet best = 0;
  for (const GpuSet part : parts) {
    if ((required & ~part) == 0 && (best == 0 || scores_[part] > scores_[best])) best = part;
  }
  if (best == 0) return {};
  return size_of(best) == count ? PluginPick{best, false} : PluginPick{0, true};
}

// The parts of `members` GPUs, `required` among them, that are in one of the best divisions of `free` that has such a
// part, in the order of ascending lists.
std::vector<GpuSet> PluginSets::best_parts(GpuSet free, GpuSet required, int members, int count) const {
  std::vector<GpuSet> parts;
  std::int32_t most = 0;
  for_each_part(free, required, members, [&](GpuSet part) {
    const std::int32_t total = scores_[part] + totals_[slot(free & ~part, count)];
    if (total < most) return;
    if (total > most) parts.clear();
    most = total;
    parts.push_back(part);
  });
  std::sort(parts.begin(), parts.end(), comes_first);
  return parts;
}

PluginPick PluginSets::pick(GpuSet free, GpuSet required, int count) const {
  if (required == 0) return pick(free, count);
  if (count < size_of(required) || size_of(free) < count || (required & ~free) != 0) return {};
  std::vector<GpuSet> division;
  for (const GpuSet part : best_parts(free, required, count, count)) {
    std::vector<GpuSet> parts = parts_with(part, free);
    if (division.empty() ||
        std::lexicographical_compare(parts.begin(), parts.end(), division.begin(), division.end(), comes_first)) {
      division = std::move(parts);
    }
  }
  return choose(std::move(division), required, count);
}

PluginOutcomes PluginSets::outcomes(GpuSet free, GpuSet required, int count) const {
  const int n = size_of(free);
  PluginOutcomes found;
  if (count < 1 || count < size_of(required) || n < count || (required & ~free) != 0) return found;
  if (is_overwritten(static_cast<std::size_t>(n + 1) / 2, count)) {
    // The order decides what is overwritten, and with what.
    for_each_part(free, required, count, [&](GpuSet part) { found.sets.push_back(part); });
    std::sort(found.sets.begin(), found.sets.end(), comes_first);
    found.may_fail = n % 2 != 0;
    return found;
  }
  found.sets = best_parts(free, required, count, count);
  if (required != 0) return found;
  // Some order makes any one of the best divisions the first, and in it any one of the highest parts.
  const auto is_highest = [&](GpuSet part) { return least_top_[slot(free & ~part, count)] <= scores_[part]; };
  std::erase_if(found.sets, [&](GpuSet part) { return !is_highest(part); });
  if (n % count != 0) {
    // A filled-up part of score 0 is the highest only where all are 0, and is never before the others then.
    const std::vector<GpuSet> filled_up = best_parts(free, 0, n % count, count);
    found.may_fail = std::any_of(filled_up.begin(), filled_up.end(),
                                 [&](GpuSet part) { return scores_[part] > 0 && is_highest(part); });
  }
  return found;
}

}  // namespace mortise::topology
