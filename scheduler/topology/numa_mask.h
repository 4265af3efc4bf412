#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace mortise::topology {

/// A set of NUMA nodes by their ids, 0..63. In hints and affinities 0 stands for "no opinion" (kubelet's nil mask);
/// kubelet itself never makes an empty mask.
using NumaMask = std::uint64_t;

inline constexpr int kMaxNumaNodes = 64;
inline constexpr NumaMask kAnyNuma = 0;

constexpr NumaMask numa_bit(int id) {
  return NumaMask{1} << id;
}

constexpr int width(NumaMask mask) {
  return std::popcount(mask);
}

/// Kubelet's order of masks: fewer nodes first, then the numerically smaller one.
constexpr bool narrower(NumaMask a, NumaMask b) {
  return width(a) != width(b) ? width(a) < width(b) : a < b;
}

/// Calls f(id) for every node in ascending order.
template <class F>
void for_each_node(NumaMask mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

/// Calls f(mask) for every non-empty subset of `universe`.
template <class F>
void for_each_submask(NumaMask universe, F&& f) {
  for (NumaMask mask = universe; mask != 0; mask = (mask - 1) & universe) f(mask);
}

/// "{0,1}"; "any" for no opinion.
inline std::string to_text(NumaMask mask) {
  if (mask == kAnyNuma) return "any";
  std::string text = "{";
  for_each_node(mask, [&](int id) { text += (text.size() > 1 ? "," : "") + std::to_string(id); });
  return text + "}";
}

}  // namespace mortise::topology
