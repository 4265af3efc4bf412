// The merge against kubelet's way of doing it: every combination of hints, compared one by one.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler/topology/merge_hints.h"
#include "tests/support/for_all.h"

namespace mortise::topology {
namespace {

struct Scenario {
  KubeletConfig config;
  NumaNodes nodes;
  std::vector<HintList> lists;
};

std::uint64_t sum_of_distances(const NumaNodes& nodes, NumaMask mask) {
  std::uint64_t sum = 0;
  for (std::size_t a = 0; a < 64; ++a) {
    for (std::size_t b = 0; b < 64; ++b) {
      if ((mask >> a & 1) != 0 && (mask >> b & 1) != 0) sum += nodes.distances[a][b];
    }
  }
  return sum;
}

/// The rules of facts "merge" one after another, with kubelet's loop.
class EveryCombination {
 public:
  explicit EveryCombination(const Scenario& scenario) : scenario_(scenario), lists_(scenario.lists) {
    if (single()) {
      for (HintList& list : lists_) {
        std::erase_if(list, [](const Hint& hint) {
          const bool one = std::popcount(hint.mask) == 1;
          return !hint.preferred || (hint.mask != 0 && !one);
        });
      }
    }
    for (const HintList& list : lists_) {
      int narrowest = 99;
      for (const Hint& hint : list) {
        if (hint.mask != 0) narrowest = std::min(narrowest, std::popcount(hint.mask));
      }
      if (narrowest != 99) wanted_ = std::max(wanted_, narrowest);
    }
  }

  Merged merge() {
    std::vector<Hint> chosen;
    walk(chosen);
    Hint best = best_.value_or(Hint{scenario_.nodes.all, false});
    if (single() && best.mask == scenario_.nodes.all) best.mask = 0;
    const bool admit = scenario_.config.policy == TopologyPolicy::kBestEffort || best.preferred;
    return {best.mask, best.preferred, admit};
  }

 private:
  bool single() const { return scenario_.config.policy == TopologyPolicy::kSingleNumaNode; }

  void walk(std::vector<Hint>& chosen) {
    if (chosen.size() == lists_.size()) return consider(chosen);
    for (const Hint& hint : lists_[chosen.size()]) {
      chosen.push_back(hint);
      walk(chosen);
      chosen.pop_back();
    }
  }

  void consider(const std::vector<Hint>& chosen) {
    Hint merged{scenario_.nodes.all, true};
    std::optional<NumaMask> first;
    for (const Hint& hint : chosen) {
      merged.preferred = merged.preferred && hint.preferred;
      if (hint.mask == 0) continue;
      if (!first) first = hint.mask;
      if (scenario_.config.rules.equal_masks && hint.mask != *first) merged.preferred = false;
      merged.mask &= hint.mask;
    }
    if (merged.mask == 0) return;
    if (!best_ || replaces(merged, *best_)) best_ = merged;
  }

  bool closer(const Hint& candidate, const Hint& current) const {
    const int a = std::popcount(candidate.mask);
    const int b = std::popcount(current.mask);
    if (a != b) return a < b;
    if (scenario_.config.prefer_closest && !single()) {
      const auto da = sum_of_distances(scenario_.nodes, candidate.mask);
      const auto db = sum_of_distances(scenario_.nodes, current.mask);
      if (da != db) return da < db;
    }
    return candidate.mask < current.mask;
  }

  bool replaces(const Hint& candidate, const Hint& current) const {
    if (candidate.preferred != current.preferred) return candidate.preferred;
    if (candidate.preferred) return closer(candidate, current);
    const int have = std::popcount(current.mask);
    const int offered = std::popcount(candidate.mask);
    if (have > wanted_) return closer(candidate, current);
    if (have == wanted_) return offered == wanted_ && closer(candidate, current);
    if (offered > wanted_) return false;
    if (offered == wanted_) return true;
    if (offered != have) return offered > have;
    return closer(candidate, current);
  }

  const Scenario& scenario_;
  std::vector<HintList> lists_;
  int wanted_ = 0;
  std::optional<Hint> best_;
};

Scenario draw() {
  Scenario scenario;
  scenario.config.policy =
      *rc::gen::element(TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted, TopologyPolicy::kSingleNumaNode);
  scenario.config.prefer_closest = *rc::gen::arbitrary<bool>();
  scenario.config.rules.equal_masks = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
  const int nodes = *rc::gen::inRange(1, 6);
  scenario.nodes.all = (NumaMask{1} << nodes) - 1;
  const auto row = rc::gen::container<std::vector<std::uint32_t>>(5, rc::gen::inRange<std::uint32_t>(10, 14));
  scenario.nodes.distances = *rc::gen::container<std::vector<std::vector<std::uint32_t>>>(5, row);
  const int lists = *rc::gen::inRange(0, 5);
  for (int i = 0; i < lists; ++i) {
    HintList list;
    const int length = *rc::gen::inRange(0, 8);
    for (int j = 0; j < length; ++j) {
      const auto mask = *rc::gen::inRange<NumaMask>(0, scenario.nodes.all + 1);  // 0 is "no opinion"
      list.push_back({mask, *rc::gen::arbitrary<bool>()});
    }
    scenario.lists.push_back(list.empty() ? no_placement() : list);
  }
  return scenario;
}

TEST(MergeHintsProperty, AgreesWithEveryCombinationTriedInTurn) {
  HintMerger merger;
  test::for_all(10'000, [&merger] {
    const Scenario scenario = draw();
    const Merged wanted = EveryCombination(scenario).merge();
    const Result<Merged> got = merger.merge(scenario.config, scenario.nodes, scenario.lists);
    RC_ASSERT(got.ok());
    RC_ASSERT(got->affinity == wanted.affinity);
    RC_ASSERT(got->preferred == wanted.preferred);
    RC_ASSERT(got->admit == wanted.admit);
  });
}

TEST(MergeHintsProperty, TheOrderOfHintsAndResourcesIsOfNoMeaning) {
  HintMerger merger;
  test::for_all(2'000, [&merger] {
    const Scenario scenario = draw();
    Scenario turned = scenario;
    std::reverse(turned.lists.begin(), turned.lists.end());
    for (HintList& list : turned.lists) std::reverse(list.begin(), list.end());
    const Merged forward = EveryCombination(scenario).merge();
    const Merged backward = EveryCombination(turned).merge();
    RC_ASSERT(forward == backward);
    RC_ASSERT(*merger.merge(turned.config, turned.nodes, turned.lists) == forward);
  });
}

}  // namespace
}  // namespace mortise::topology
