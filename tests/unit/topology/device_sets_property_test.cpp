#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "scheduler/topology/device_sets.h"
#include "tests/support/for_all.h"
#include "tests/support/plain_sets.h"

namespace mortise::topology {
namespace {

// inRange alone draws from all of the range only in the last of the cases.
template <class T>
T within(T least, T below) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(least, below));
}

// One question about a random machine. Values come from few kinds of links, so that ties are common.
struct Question {
  PairMatrix pairs;
  std::vector<int> nic_distance;
  GpuSet free = 0;
  int count = 0;
};

PairMatrix any_pairs(int gpus) {
  const auto kinds = *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(within(1, 6)),
                                                           rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 300)));
  PairMatrix pairs(gpus);
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) pairs.set(a, b, *rc::gen::elementOf(kinds));
  }
  return pairs;
}

Question any_question(int most_gpus) {
  const int gpus = within(1, most_gpus + 1);
  Question question{any_pairs(gpus), {}, 0, within(1, gpus + 1)};
  if (*rc::gen::arbitrary<bool>()) {
    question.nic_distance = *rc::gen::container<std::vector<int>>(
        static_cast<std::size_t>(gpus), rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 3)));
  }
  const GpuSet all = gpu_bit(gpus) - 1;
  question.free = *rc::gen::arbitrary<bool>() ? all : within<GpuSet>(0, all + 1);
  return question;
}

GpuSet some_of(GpuSet set, int most) {
  GpuSet some = 0;
  for_each_gpu(set, [&](int gpu) {
    if (size_of(some) < most && within(0, 3) == 0) some |= gpu_bit(gpu);
  });
  return some;
}

std::vector<int> list_of(GpuSet set) {
  std::vector<int> list;
  for_each_gpu(set, [&](int gpu) { list.push_back(gpu); });
  return list;
}

DeviceSets sets_of(const Question& question) {
  return *DeviceSets::of(question.pairs, question.pairs, question.nic_distance);
}

std::span<const ObjectiveInfo> ranked_objectives() {
  return objective_table().first(3);
}

TEST(DeviceSetsProperty, EveryObjectiveFindsWhatTryingAllFinds) {
  test::for_all(10'000, [] {
    const Question q = any_question(8);
    const DeviceSets sets = sets_of(q);
    for (const ObjectiveInfo& info : ranked_objectives()) {
      const GpuSet best = sets.best(info.objective, q.free, q.count);
      RC_ASSERT(best == test::plain_best(q.pairs, q.nic_distance, info.objective, q.free, q.count));
      RC_ASSERT(sets.value(best) == test::plain_value(q.pairs, best));
    }
    const PluginPick plain = test::plain_plugin(q.pairs, list_of(q.free), 0, q.count);
    RC_ASSERT(sets.best(Objective::kNvidia, q.free, q.count) == plain.set);
    RC_ASSERT(sets.plugin().pick(q.free, q.count) == plain);
    const GpuSet required = some_of(within(0, 10) == 0 ? sets.all() : q.free, q.count);
    RC_ASSERT(sets.plugin().pick(q.free, required, q.count) ==
              test::plain_plugin(q.pairs, list_of(q.free), required, q.count));
  });
}

TEST(DeviceSetsProperty, LargeMachinesFindWhatTryingAllFinds) {
  test::for_all(12, [] {
    const int gpus = within(9, 13);
    const PairMatrix pairs = any_pairs(gpus);
    const DeviceSets sets = *DeviceSets::of(pairs, pairs);
    const GpuSet free = sets.all() & ~gpu_bit(within(0, gpus));
    // Trying every ring of 8 would take too long: of the rest at most 7 are left.
    const int count = within(size_of(free) - 7, 6);
    for (const ObjectiveInfo& info : ranked_objectives()) {
      RC_ASSERT(sets.best(info.objective, free, count) == test::plain_best(pairs, {}, info.objective, free, count));
    }
  });
}

TEST(DeviceSetsProperty, OutcomesAreThoseOfEveryOrder) {
  test::for_all(2'000, [] {
    const Question q = any_question(5);
    const DeviceSets sets = sets_of(q);
    const GpuSet required = *rc::gen::arbitrary<bool>() ? 0 : some_of(q.free, q.count);
    std::set<GpuSet> seen;
    bool fails = false;
    std::vector<int> order = list_of(q.free);
    do {
      const PluginPick pick = test::plain_plugin(q.pairs, order, required, q.count);
      fails = fails || pick.fails;
      if (pick.set != 0) seen.insert(pick.set);
    } while (std::next_permutation(order.begin(), order.end()));
    const PluginOutcomes outcomes = sets.plugin().outcomes(q.free, required, q.count);
    RC_ASSERT(std::set<GpuSet>(outcomes.sets.begin(), outcomes.sets.end()) == seen);
    RC_ASSERT(outcomes.may_fail || !fails);
    RC_ASSERT(!outcomes.may_fail || size_of(q.free) % q.count != 0);
  });
}

GpuSet moved(GpuSet set, const std::vector<int>& place) {
  GpuSet result = 0;
  for_each_gpu(set, [&](int gpu) { result |= gpu_bit(place[static_cast<std::size_t>(gpu)]); });
  return result;
}

// The same machine with GPU i at position place[i].
Question moved(const Question& q, const std::vector<int>& place) {
  Question result = q;
  for (int a = 0; a < q.pairs.gpus; ++a) {
    const int to = place[static_cast<std::size_t>(a)];
    if (!q.nic_distance.empty()) {
      result.nic_distance[static_cast<std::size_t>(to)] = q.nic_distance[static_cast<std::size_t>(a)];
    }
    for (int b = 0; b < a; ++b) result.pairs.set(to, place[static_cast<std::size_t>(b)], q.pairs.at(a, b));
  }
  result.free = moved(q.free, place);
  return result;
}

TEST(DeviceSetsProperty, AMachineWithOtherIndicesGetsSetsOfTheSameMerit) {
  test::for_all(3'000, [] {
    const Question q = any_question(7);
    std::vector<int> place(static_cast<std::size_t>(q.pairs.gpus));
    std::iota(place.begin(), place.end(), 0);
    for (std::size_t i = place.size(); i > 1; --i) std::swap(place[i - 1], place[within<std::size_t>(0, i)]);
    const Question other = moved(q, place);
    const DeviceSets sets = sets_of(q);
    const DeviceSets other_sets = sets_of(other);
    for (const ObjectiveInfo& info : ranked_objectives()) {
      const GpuSet best = sets.best(info.objective, q.free, q.count);
      const GpuSet other_best = other_sets.best(info.objective, other.free, q.count);
      RC_ASSERT(size_of(best) == size_of(other_best));
      RC_ASSERT(test::plain_merit(q.pairs, q.nic_distance, info.objective, q.free, best) ==
                test::plain_merit(other.pairs, other.nic_distance, info.objective, other.free, other_best));
    }
    const PluginOutcomes outcomes = sets.plugin().outcomes(q.free, 0, q.count);
    const PluginOutcomes other_outcomes = other_sets.plugin().outcomes(other.free, 0, q.count);
    std::set<GpuSet> here;
    for (const GpuSet set : outcomes.sets) here.insert(moved(set, place));
    RC_ASSERT(here == std::set<GpuSet>(other_outcomes.sets.begin(), other_outcomes.sets.end()));
    RC_ASSERT(outcomes.may_fail == other_outcomes.may_fail);
  });
}

}  // namespace
}  // namespace mortise::topology
