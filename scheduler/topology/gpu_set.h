#pragma once

#include <bit>
#include <cstdint>

namespace mortise::topology {

/// A set of a machine's GPUs: bit i stands for the GPU at position i.
using GpuSet = std::uint32_t;

/// The largest machine whose sets are tabulated: 2^16 sets.
inline constexpr int kMaxSetGpus = 16;

constexpr GpuSet gpu_bit(int gpu) {
  return GpuSet{1} << gpu;
}

constexpr GpuSet lowest_gpu(GpuSet set) {
  return set & (~set + 1);
}

constexpr int size_of(GpuSet set) {
  return std::popcount(set);
}

/// A number that is larger the earlier the set comes in the order of ascending lists, where {0,3} is before {1,2} and
/// a list comes before its own beginnings ({0,1,2} before {0,1}).
constexpr std::uint16_t list_rank(GpuSet set) {
  GpuSet turned = 0;
  for (int i = 0; i < kMaxSetGpus; ++i) turned |= (set >> i & 1U) << (kMaxSetGpus - 1 - i);
  return static_cast<std::uint16_t>(turned);
}

/// The set with that list_rank.
constexpr GpuSet set_of_list_rank(std::uint16_t rank) {
  return list_rank(rank);
}

/// Calls f(gpu) for every member in ascending order.
template <class F>
constexpr void for_each_gpu(GpuSet set, F&& f) {
  for (; set != 0; set &= set - 1) f(std::countr_zero(set));
}

/// Calls f(subset) for every non-empty subset of `set`, numerically largest first.
template <class F>
constexpr void for_each_subset(GpuSet set, F&& f) {
  for (GpuSet subset = set; subset != 0; subset = (subset - 1) & set) f(subset);
}

}  // namespace mortise::topology
