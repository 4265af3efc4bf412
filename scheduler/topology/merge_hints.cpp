#include "scheduler/topology/merge_hints.h"

#include <algorithm>
#include <string>

namespace mortise::topology {
namespace {

// Sums over supersets, and back. After both, `values[m]` counts the pairs whose intersection is exactly m.
void to_superset_sums(std::vector<std::int64_t>& values) {
  for (std::size_t bit = 1; bit < values.size(); bit <<= 1) {
    for (std::size_t m = 0; m < values.size(); ++m) {
      if ((m & bit) == 0) values[m] += values[m | bit];
    }
  }
}

void from_superset_sums(std::vector<std::int64_t>& values) {
  for (std::size_t bit = 1; bit < values.size(); bit <<= 1) {
    for (std::size_t m = 0; m < values.size(); ++m) {
      if ((m & bit) == 0) values[m] -= values[m | bit];
    }
  }
}

int narrowest_width(const HintList& list) {
  int narrowest = 0;
  for (const Hint& hint : list) {
    if (hint.mask == kAnyNuma) continue;
    if (narrowest == 0 || width(hint.mask) < narrowest) narrowest = width(hint.mask);
  }
  return narrowest;
}

// single-numa-node keeps preferred one-node hints and preferred "no opinion"; one-node masks that differ have no common
// node, so what is left is an intersection of node sets.
Merged merge_single(const NumaNodes& nodes, std::span<const HintList> lists) {
  NumaMask common = nodes.all;
  NumaMask optional = 0;
  bool insisted = false;
  for (const HintList& list : lists) {
    NumaMask offered = 0;
    bool neutral = false;
    for (const Hint& hint : list) {
      if (!hint.preferred) continue;
      if (hint.mask == kAnyNuma) neutral = true;
      if (width(hint.mask) == 1) offered |= hint.mask;
    }
    if (neutral) {
      optional |= offered;
    } else {
      insisted = true;
      common &= offered;
    }
  }
  if (!insisted && optional != 0) common = optional;
  Merged merged;
  merged.preferred = common != 0;
  merged.admit = merged.preferred;
  const NumaMask chosen = insisted || optional != 0 ? common & (~common + 1) : common;
  // Kubelet turns "all nodes" into nil; on a machine with one NUMA node that is every result.
  if (chosen != nodes.all) merged.affinity = chosen;
  return merged;
}

}  // namespace

std::uint64_t HintMerger::distance_sum(NumaMask mask) const {
  std::uint64_t sum = 0;
  for_each_node(mask, [&](int a) {
    for_each_node(mask,
                  [&](int b) { sum += nodes_->distances[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; });
  });
  return sum;
}

// Kubelet compares average distances; at equal width the sums say the same without rounding.
bool HintMerger::better(NumaMask a, NumaMask b) const {
  if (closest_ && width(a) == width(b)) {
    const std::uint64_t da = distance_sum(a);
    const std::uint64_t db = distance_sum(b);
    if (da != db) return da < db;
  }
  return narrower(a, b);
}

// Among unpreferred masks kubelet wants the width of the neediest resource, else the widest below it, else the
// narrowest above it.
bool HintMerger::better_unpreferred(NumaMask a, NumaMask b) const {
  const auto tier = [this](NumaMask mask) {
    if (width(mask) == wanted_width_) return 0;
    return width(mask) < wanted_width_ ? 1 : 2;
  };
  if (tier(a) != tier(b)) return tier(a) < tier(b);
  if (tier(a) == 1 && width(a) != width(b)) return width(a) > width(b);
  return better(a, b);
}

std::uint32_t HintMerger::compact(NumaMask mask) const {
  std::uint32_t result = 0;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if ((mask & numa_bit(ids_[i])) != 0) result |= std::uint32_t{1} << i;
  }
  return result;
}

NumaMask HintMerger::expand(std::uint32_t compact_mask) const {
  // The bit above the named nodes stands for "all nodes": it survives only when no resource had an opinion.
  if ((compact_mask >> ids_.size()) != 0) return nodes_->all;
  NumaMask mask = 0;
  for_each_node(compact_mask, [&](int i) { mask |= numa_bit(ids_[static_cast<std::size_t>(i)]); });
  return mask;
}

// The best mask for which some combination has only preferred hints and one mask; 0: there is none.
NumaMask HintMerger::best_equal_preferred(std::span<const HintList> lists) {
  agreed_.assign(std::size_t{1} << ids_.size(), 0);
  NumaMask best = 0;
  const auto consider = [&](NumaMask mask) {
    if (best == 0 || better(mask, best)) best = mask;
  };
  // Lists that may also answer "no opinion" agree with every mask; agreed_[m] is how many of the others offer m.
  std::int64_t insisting = 0;
  const HintList* last = nullptr;
  for (const HintList& list : lists) {
    if (std::find(list.begin(), list.end(), Hint{kAnyNuma, true}) != list.end()) continue;
    for (const Hint& hint : list) {
      if (!hint.preferred || hint.mask == kAnyNuma) continue;
      std::int64_t& agreed = agreed_[compact(hint.mask)];
      if (agreed == insisting) ++agreed;
    }
    ++insisting;
    last = &list;
  }
  const auto consider_offers = [&](const HintList& list) {
    for (const Hint& hint : list) {
      if (!hint.preferred || hint.mask == kAnyNuma) continue;
      if (agreed_[compact(hint.mask)] == insisting) consider(hint.mask);
    }
  };
  if (last != nullptr) {
    consider_offers(*last);
    return best;
  }
  consider(nodes_->all);
  for (const HintList& list : lists) consider_offers(list);
  return best;
}

void HintMerger::intersect_with(const HintList& list, bool preferred_only) {
  const std::uint32_t everything = (std::uint32_t{2} << ids_.size()) - 1;
  std::fill(offered_.begin(), offered_.end(), 0);
  for (const Hint& hint : list) {
    if (preferred_only && !hint.preferred) continue;
    offered_[hint.mask == kAnyNuma ? everything : compact(hint.mask)] = 1;
  }
  to_superset_sums(reached_);
  to_superset_sums(offered_);
  for (std::size_t m = 0; m < reached_.size(); ++m) reached_[m] *= offered_[m];
  from_superset_sums(reached_);
  for (std::int64_t& value : reached_) value = value != 0 ? 1 : 0;
}

// The best non-empty intersection of one hint per list; 0: there is none.
NumaMask HintMerger::best_reachable(std::span<const HintList> lists, bool preferred_only) {
  reached_.assign(std::size_t{2} << ids_.size(), 0);
  offered_.resize(reached_.size());
  reached_.back() = 1;
  for (const HintList& list : lists) {
    if (list.size() == 1 && list.front() == Hint{kAnyNuma, true}) continue;  // leaves every mask as it is
    intersect_with(list, preferred_only);
  }
  NumaMask best = 0;
  for (std::uint32_t m = 1; m < reached_.size(); ++m) {
    if (reached_[m] == 0) continue;
    const NumaMask mask = expand(m);
    if (best == 0 || (preferred_only ? better(mask, best) : better_unpreferred(mask, best))) best = mask;
  }
  return best;
}

Result<Merged> HintMerger::merge(const KubeletConfig& config, const NumaNodes& nodes, std::span<const HintList> lists) {
  if (config.policy == TopologyPolicy::kSingleNumaNode) return merge_single(nodes, lists);
  nodes_ = &nodes;
  closest_ = config.prefer_closest;
  NumaMask named = 0;
  wanted_width_ = 0;
  for (const HintList& list : lists) {
    for (const Hint& hint : list) named |= hint.mask;
    wanted_width_ = std::max(wanted_width_, narrowest_width(list));
  }
  if (width(named) > kMaxHintNodes) {
    return Error{"the hints name " + std::to_string(width(named)) + " NUMA nodes; at most " +
                 std::to_string(kMaxHintNodes) + " can be merged (kubelet enumerates all their subsets)"};
  }
  ids_.clear();
  for_each_node(named, [this](int id) { ids_.push_back(id); });

  Merged merged;
  merged.affinity = config.rules.equal_masks ? best_equal_preferred(lists) : best_reachable(lists, true);
  merged.preferred = merged.affinity != 0;
  if (!merged.preferred) merged.affinity = best_reachable(lists, false);
  if (merged.affinity == 0) merged.affinity = nodes.all;
  merged.admit = merged.preferred || config.policy == TopologyPolicy::kBestEffort;
  return merged;
}

}  // namespace mortise::topology
