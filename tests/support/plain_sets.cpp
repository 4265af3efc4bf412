#include "tests/support/plain_sets.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace mortise::test {
namespace {

using topology::GpuSet;
using topology::Objective;
using topology::PairMatrix;
using topology::SetValue;

std::vector<int> members(GpuSet set) {
  std::vector<int> list;
  for (int gpu = 0; gpu < 32; ++gpu) {
    if ((set >> gpu & 1U) != 0) list.push_back(gpu);
  }
  return list;
}

// All sets of `count` of the GPUs, in the order of ascending lists.
std::vector<GpuSet> sets_of(GpuSet free, int count) {
  const std::vector<int> gpus = members(free);
  std::vector<GpuSet> sets;
  if (count < 0 || static_cast<std::size_t>(count) > gpus.size()) return sets;
  std::vector<bool> chosen(gpus.size(), false);
  std::fill_n(chosen.begin(), count, true);
  do {
    GpuSet set = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (chosen[i]) set |= GpuSet{1} << gpus[i];
    }
    sets.push_back(set);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return sets;
}

std::int64_t best_ring(const PairMatrix& pairs, std::vector<int> order) {
  std::int64_t best = 0;
  do {  // a ring may start anywhere: the first GPU stays
    std::int64_t least = pairs.at(order.back(), order.front());
    for (std::size_t i = 1; i < order.size(); ++i) least = std::min(least, pairs.at(order[i - 1], order[i]));
    best = std::max(best, least);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return best;
}

PlainMerit own_merit(const PairMatrix& pairs, Objective objective, GpuSet set) {
  const SetValue value = plain_value(pairs, set);
  if (objective == Objective::kBottleneck) return {value.bottleneck, value.total, value.ring};
  if (objective == Objective::kRing) return {value.ring, value.total, value.bottleneck};
  return {value.total, value.bottleneck, value.ring};
}

constexpr int kPadding = -1;
using Part = std::vector<int>;

std::int64_t score_of(const PairMatrix& scores, const Part& part) {
  std::int64_t sum = 0;
  for (const int a : part) {
    for (const int b : part) {
      if (a != kPadding && b != kPadding && a < b) sum += scores.at(a, b);
    }
  }
  return sum;
}

bool is_padded(const Part& part) {
  return std::count(part.begin(), part.end(), kPadding) > 0;
}

bool holds(const Part& part, GpuSet required) {
  for (const int gpu : members(required)) {
    if (std::count(part.begin(), part.end(), gpu) == 0) return false;
  }
  return true;
}

// Calls f(division) for every division of `gpus` into parts of `size`, in the policy's order.
void for_each_division(const Part& gpus, std::size_t size, std::vector<Part>& division,
                       const std::function<void(const std::vector<Part>&)>& f) {
  if (gpus.empty()) {
    f(division);
    return;
  }
  std::vector<bool> chosen(gpus.size(), false);
  std::fill_n(chosen.begin(), size, true);
  do {
    Part part;
    Part rest;
    for (std::size_t i = 0; i < gpus.size(); ++i) (chosen[i] ? part : rest).push_back(gpus[i]);
    const bool split_padding = is_padded(part) && is_padded(rest);
    if (!split_padding) {
      division.push_back(part);
      for_each_division(rest, size, division, f);
      division.pop_back();
    }
  } while (std::prev_permutation(chosen.begin() + 1, chosen.end()));  // the first one is always in the first part
}

}  // namespace

SetValue plain_value(const PairMatrix& pairs, GpuSet set) {
  const std::vector<int> gpus = members(set);
  SetValue value;
  if (gpus.size() < 2) return value;
  value.bottleneck = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      value.total += pairs.at(gpus[i], gpus[j]);
      value.bottleneck = std::min(value.bottleneck, pairs.at(gpus[i], gpus[j]));
    }
  }
  value.ring = best_ring(pairs, gpus);
  return value;
}

PlainMerit plain_merit(const PairMatrix& pairs, const std::vector<int>& nic_distance, Objective objective, GpuSet free,
                       GpuSet set) {
  PlainMerit merit = own_merit(pairs, objective, set);
  const GpuSet rest = free & ~set;
  for (const int size : {8, 4, 2}) {
    PlainMerit best{-1, -1, -1};
    for (const GpuSet later : sets_of(rest, size)) best = std::max(best, own_merit(pairs, objective, later));
    merit.insert(merit.end(), best.begin(), best.end());
  }
  std::int64_t total = 0;
  for (const int a : members(rest)) {
    for (const int b : members(rest)) total += a < b ? pairs.at(a, b) : 0;
  }
  merit.push_back(total);
  std::int64_t distance = 0;
  for (const int gpu : members(set)) distance += nic_distance.empty() ? 0 : nic_distance[static_cast<std::size_t>(gpu)];
  merit.push_back(-distance);
  return merit;
}

GpuSet plain_best(const PairMatrix& pairs, const std::vector<int>& nic_distance, Objective objective, GpuSet free,
                  int count) {
  if (count < 1) return 0;
  GpuSet best = 0;
  PlainMerit most;
  for (const GpuSet set : sets_of(free, count)) {
    PlainMerit merit = plain_merit(pairs, nic_distance, objective, free, set);
    if (best == 0 || merit > most) {
      best = set;
      most = std::move(merit);
    }
  }
  return best;
}

topology::PluginPick plain_plugin(const PairMatrix& scores, const std::vector<int>& free, GpuSet required, int count) {
  const auto size = static_cast<std::size_t>(std::max(count, 0));
  if (size == 0 || free.size() < size || members(required).size() > size) return {};
  Part padded = free;
  while (padded.size() % size != 0) padded.push_back(kPadding);
  std::vector<Part> best;
  std::int64_t most = -1;
  std::vector<Part> scratch;
  for_each_division(padded, size, scratch, [&](const std::vector<Part>& division) {
    const bool fits = std::any_of(division.begin(), division.end(),
                                  [&](const Part& part) { return !is_padded(part) && holds(part, required); });
    std::int64_t score = 0;
    for (const Part& part : division) score += score_of(scores, part);
    if (!fits || score <= most) return;
    best = division;
    most = score;
  });
  std::erase_if(best, [&](const Part& part) { return !holds(part, required); });
  if (best.empty()) return {};
  const Part& chosen = *std::max_element(best.begin(), best.end(), [&](const Part& a, const Part& b) {
    return score_of(scores, a) < score_of(scores, b);
  });
  if (is_padded(chosen)) return {0, true};
  GpuSet set = 0;
  for (const int gpu : chosen) set |= GpuSet{1} << gpu;
  return {set, false};
}

}  // namespace mortise::test
