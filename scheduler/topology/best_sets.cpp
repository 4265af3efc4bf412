#include "scheduler/topology/best_sets.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace mortise::topology {
namespace {

using Ranks = std::vector<std::uint16_t>;  // by set; larger is better

// Dense ranks, so that any order of at most 2^16 sets packs into 16 bits. `less` orders two sets.
template <class Less>
Ranks dense_ranks(std::size_t count, Less&& less) {
  std::vector<GpuSet> order(count);
  std::iota(order.begin(), order.end(), GpuSet{0});
  std::sort(order.begin(), order.end(), less);
  Ranks ranks(count);
  std::uint16_t rank = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && less(order[i - 1], order[i])) ++rank;
    ranks[order[i]] = rank;
  }
  return ranks;
}

Ranks merit_ranks(const SetValues& values, SetMerit (*merit)(const SetValue&)) {
  return dense_ranks(values.count(), [&](GpuSet a, GpuSet b) { return merit(values.of(a)) < merit(values.of(b)); });
}

// 1 + the merit rank of the best set of `size` within each set; 0 where there is none.
std::vector<std::uint32_t> best_within(const Ranks& merits, int size) {
  std::vector<std::uint32_t> best(merits.size());
  for (GpuSet set = 1; set < merits.size(); ++set) {
    if (size_of(set) == size) best[set] = merits[set] + 1U;
    if (size_of(set) <= size) continue;
    for_each_gpu(set, [&](int gpu) { best[set] = std::max(best[set], best[set & ~gpu_bit(gpu)]); });
  }
  return best;
}

// How good each set is when it is what stays free.
Ranks rest_ranks(const SetValues& values, const Ranks& merits) {
  const auto eight = best_within(merits, 8);
  const auto four = best_within(merits, 4);
  const auto two = best_within(merits, 2);
  const auto of = [&](GpuSet set) { return std::tuple(eight[set], four[set], two[set], values.of(set).total); };
  return dense_ranks(merits.size(), [&](GpuSet a, GpuSet b) { return of(a) < of(b); });
}

Ranks nic_ranks(std::size_t count, std::span<const int> distance) {
  if (distance.empty()) return Ranks(count);
  std::vector<std::int64_t> sums(count);
  for (GpuSet set = 1; set < count; ++set) {
    sums[set] = sums[set & (set - 1)] + distance[static_cast<std::size_t>(std::countr_zero(set))];
  }
  return dense_ranks(count, [&](GpuSet a, GpuSet b) { return sums[a] > sums[b]; });
}

}  // namespace

BestSets::BestSets(const SetValues& values, SetMerit (*merit)(const SetValue&), std::span<const int> nic_distance)
    : gpus_(values.gpus()), sizes_(static_cast<std::size_t>(values.gpus()) + 1), sets_(values.count() * sizes_) {
  const Ranks merits = merit_ranks(values, merit);
  const Ranks rests = rest_ranks(values, merits);
  const Ranks nics = nic_ranks(values.count(), nic_distance);
  // All that decides, in one number; the set itself can be read back from its last 16 bits.
  std::vector<std::uint64_t> keys(values.count());
  for (GpuSet set = 0; set < keys.size(); ++set) {
    keys[set] = std::uint64_t{merits[set]} << 48 | std::uint64_t{nics[set]} << 16 | list_rank(set);
  }
  for (GpuSet free = 0; free < values.count(); ++free) {
    std::array<std::uint64_t, kMaxSetGpus + 1> best{};
    for_each_subset(free, [&](GpuSet set) {
      std::uint64_t& top = best[static_cast<std::size_t>(size_of(set))];
      top = std::max(top, keys[set] | std::uint64_t{rests[free & ~set]} << 32);
    });
    for (std::size_t size = 1; size < sizes_; ++size) {
      sets_[free * sizes_ + size] =
          static_cast<std::uint16_t>(set_of_list_rank(static_cast<std::uint16_t>(best[size] & 0xffff)));
    }
  }
}

}  // namespace mortise::topology
