#include "scheduler/topology/set_values.h"

#include <algorithm>
#include <limits>
#include <string>

namespace mortise::topology {
namespace {

// So that the sum over all pairs of the largest machine fits in 32 bits.
constexpr std::int64_t kMaxPair = std::numeric_limits<std::int32_t>::max() / (kMaxSetGpus * (kMaxSetGpus - 1) / 2);

std::string pair_text(int a, int b) {
  return "GPUs " + std::to_string(a) + " and " + std::to_string(b);
}

}  // namespace

Status check_pairs(const PairMatrix& pairs, const char* what) {
  const std::string name = what;
  if (pairs.gpus < 0 || pairs.gpus > kMaxSetGpus) {
    return Error{name + ": " + std::to_string(pairs.gpus) + " GPUs; device sets are made for 0 to " +
                 std::to_string(kMaxSetGpus)};
  }
  const auto n = static_cast<std::size_t>(pairs.gpus);
  if (pairs.values.size() != n * n) {
    return Error{name + ": " + std::to_string(pairs.values.size()) + " values for " + std::to_string(n) +
                 " GPUs; one per pair and direction is " + std::to_string(n * n)};
  }
  for (int a = 0; a < pairs.gpus; ++a) {
    if (pairs.at(a, a) != 0) return Error{name + ": GPU " + std::to_string(a) + " has a value to itself; allowed is 0"};
    for (int b = 0; b < a; ++b) {
      if (pairs.at(a, b) != pairs.at(b, a)) return Error{name + ": " + pair_text(b, a) + " differ by direction"};
      if (pairs.at(a, b) < 0 || pairs.at(a, b) > kMaxPair) {
        return Error{name + ": " + pair_text(b, a) + " have " + std::to_string(pairs.at(a, b)) + "; allowed is 0 to " +
                     std::to_string(kMaxPair)};
      }
    }
  }
  return ok_status();
}

SetValues::SetValues(const PairMatrix& pairs) : gpus_(pairs.gpus), values_(std::size_t{1} << pairs.gpus) {
  for (GpuSet set = 1; set < values_.size(); ++set) {
    if (size_of(set) < 2) continue;
    const int first = std::countr_zero(set);
    const GpuSet others = set & (set - 1);
    SetValue value = values_[others];
    if (size_of(others) == 1) value.bottleneck = kMaxPair;
    for_each_gpu(others, [&](int gpu) {
      value.total += pairs.at(first, gpu);
      value.bottleneck = std::min(value.bottleneck, pairs.at(first, gpu));
    });
    values_[set] = value;
  }
  add_rings(pairs);
}

// Held and Karp's dynamic programme over subsets, with the least pair in place of the sum: path(set, last) is the best
// path from the set's lowest GPU through all of it to `last`. None ends where it began: those stay 0.
void SetValues::add_rings(const PairMatrix& pairs) {
  const auto n = static_cast<std::size_t>(gpus_);
  std::vector<std::int32_t> path(values_.size() * n);
  const auto at = [n](GpuSet set, int last) { return set * n + static_cast<std::size_t>(last); };
  for (GpuSet set = 1; set < values_.size(); ++set) {
    const int first = std::countr_zero(set);
    const GpuSet others = set & (set - 1);
    if (others == 0) path[at(set, first)] = kMaxPair;
    for_each_gpu(others, [&](int last) {
      const GpuSet before = set & ~gpu_bit(last);
      std::int32_t best = 0;
      for_each_gpu(before, [&](int end) {
        best = std::max(best, std::min(path[at(before, end)], static_cast<std::int32_t>(pairs.at(end, last))));
      });
      path[at(set, last)] = best;
      values_[set].ring = std::max(values_[set].ring, std::min<std::int64_t>(best, pairs.at(last, first)));
    });
  }
}

}  // namespace mortise::topology
