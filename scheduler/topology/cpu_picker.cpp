#include "scheduler/topology/cpu_picker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scheduler/topology/cpu_accumulator.h"

namespace mortise::topology {
namespace {

Error not_enough(std::size_t count, const IndexSet& available) {
  return Error{"not enough cpus available to satisfy request: requested=" + std::to_string(count) +
               ", available=" + std::to_string(available.count())};
}

Result<IndexSet> pick_packed(const CpuLayout& layout, const IndexSet& available, std::size_t count, bool spread,
                             bool by_cache) {
  CpuAccumulator acc(layout, available, count, spread);
  if (acc.satisfied()) return acc.taken();
  if (acc.failed()) return not_enough(count, available);
  acc.take_whole_nodes();
  if (!acc.satisfied() && by_cache) acc.take_caches();
  if (!acc.satisfied() && !spread) acc.take_whole_cores();
  if (!acc.satisfied()) acc.take_single_cpus();
  if (!acc.satisfied()) return Error{"failed to allocate cpus"};
  return acc.taken();
}

// Kubelet keeps the best combination of NUMA nodes as a Go slice whose array later combinations may share, so its last
// elements can change after it was chosen. The mirror has to share arrays at the same places: a slice grows into a new
// array of doubled capacity exactly when it is full.
class GoSlice {
 public:
  GoSlice appended(int value) const {
    GoSlice next;
    const std::size_t capacity = array_ == nullptr ? 0 : array_->size();
    if (size_ == capacity) {
      next.array_ =
          array_ == nullptr ? std::make_shared<std::vector<int>>() : std::make_shared<std::vector<int>>(*array_);
      next.array_->resize(capacity == 0 ? 1 : 2 * capacity);
    } else {
      next.array_ = array_;
    }
    (*next.array_)[size_] = value;
    next.size_ = size_ + 1;
    return next;
  }

  std::size_t size() const { return size_; }
  int operator[](std::size_t i) const { return (*array_)[i]; }

 private:
  std::shared_ptr<std::vector<int>> array_;
  std::size_t size_ = 0;
};

// Calls f(combination) for every k of `items`, in lexicographic order, until f answers false.
template <class F>
bool combinations(const std::vector<int>& items, std::size_t k, std::size_t start, const GoSlice& chosen, const F& f) {
  if (k == 0) return f(chosen);
  for (std::size_t i = start; i + k <= items.size(); ++i) {
    if (!combinations(items, k - 1, i + 1, chosen.appended(items[i]), f)) return false;
  }
  return true;
}

double round_to_thousandth(double value) {
  return std::round(value * 1000) / 1000;
}

double standard_deviation(const std::map<int, std::int64_t>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const auto& [id, value] : values) sum += static_cast<double>(value);
  const double mean = round_to_thousandth(sum / n);
  double squares = 0;
  for (const auto& [id, value] : values) {
    const double distance = static_cast<double>(value) - mean;
    squares += distance * distance;
  }
  return round_to_thousandth(std::sqrt(squares / n));
}

/// distribute-cpus-across-numa: an equal share from each node of a combination, the rest where the leftovers of all
/// nodes stay most even (KEP-2902).
class Distribution {
 public:
  Distribution(const CpuLayout& layout, const IndexSet& available, std::size_t count, std::size_t group, bool spread)
      : layout_(layout),
        acc_(layout, available, count, spread),
        count_(static_cast<std::int64_t>(count)),
        group_(static_cast<std::int64_t>(group)),
        spread_(spread) {
    for (const CpuGroup* numa : acc_.sorted_numas()) ids_.push_back(numa->id);
  }

  /// An empty set with ok(): no combination fits, the caller packs instead.
  Result<IndexSet> pick();

 private:
  using Leftovers = std::map<int, std::int64_t>;  // by NUMA id

  static constexpr double kNoBalance = std::numeric_limits<double>::max();

  struct Best {
    double balance = kNoBalance;
    GoSlice remainder;
    GoSlice combination;
  };

  std::int64_t free_in(int id) const { return static_cast<std::int64_t>(acc_.free_in_numa(id)); }
  std::int64_t share_of(std::size_t nodes) const { return count_ / static_cast<std::int64_t>(nodes) / group_ * group_; }
  bool fits(const GoSlice& combination) const;
  void judge(const GoSlice& combination, Best& best) const;
  void judge_remainder(const Leftovers& left, const std::vector<int>& from, std::int64_t remainder, Best& best) const;
  bool hand_out(Leftovers& left, const GoSlice& subset, std::int64_t remainder) const;
  Result<IndexSet> take(const Best& best);

  const CpuLayout& layout_;
  CpuAccumulator acc_;
  std::int64_t count_;
  std::int64_t group_;
  bool spread_;
  std::vector<int> ids_;  ///< a node that spans sockets appears once per socket, as in kubelet
};

bool Distribution::fits(const GoSlice& combination) const {
  IndexSet cpus;
  std::int64_t groups = 0;
  bool share_fits = true;
  for (std::size_t i = 0; i < combination.size(); ++i) {
    const std::int64_t free = free_in(combination[i]);
    cpus |= acc_.free_cpus_in_numa(combination[i]);
    groups += free / group_;
    share_fits = share_fits && free >= share_of(combination.size());
  }
  return static_cast<std::int64_t>(cpus.count()) >= count_ && groups * group_ >= count_ && share_fits;
}

// Kubelet does not come back when the subset runs out of whole groups; such a subset is passed over.
bool Distribution::hand_out(Leftovers& left, const GoSlice& subset, std::int64_t remainder) const {
  while (remainder > 0) {
    const std::int64_t before = remainder;
    for (std::size_t i = 0; i < subset.size() && remainder > 0; ++i) {
      std::int64_t& value = left.at(subset[i]);
      if (value < group_) continue;
      value -= group_;
      remainder -= group_;
    }
    if (remainder == before) return false;
  }
  return true;
}

void Distribution::judge_remainder(const Leftovers& left, const std::vector<int>& from, std::int64_t remainder,
                                   Best& best) const {
  for (std::size_t k = from.size(); k >= 1; --k) {
    combinations(from, k, 0, GoSlice{}, [&](const GoSlice& subset) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < subset.size(); ++i) sum += left.at(subset[i]);
      Leftovers after = left;
      if (sum < remainder || !hand_out(after, subset, remainder)) return true;
      const double balance = standard_deviation(after);
      if (balance < best.balance) {
        best.balance = balance;
        best.remainder = subset;
      }
      return true;
    });
  }
}

void Distribution::judge(const GoSlice& combination, Best& best) const {
  const std::int64_t share = share_of(combination.size());
  Leftovers left;
  for (const int id : ids_) left[id] = free_in(id);
  for (std::size_t i = 0; i < combination.size(); ++i) left[combination[i]] -= share;
  std::vector<int> with_rest;
  for (std::size_t i = 0; i < combination.size(); ++i) {
    if (left[combination[i]] >= group_) with_rest.push_back(combination[i]);
  }
  const std::int64_t remainder = count_ - share * static_cast<std::int64_t>(combination.size());
  Best local;
  if (remainder == 0) {
    local.balance = standard_deviation(left);
  } else {
    judge_remainder(left, with_rest, remainder, local);
  }
  if (local.balance < best.balance) {
    best.balance = local.balance;
    best.remainder = local.remainder;
    best.combination = combination;
  }
}

Result<IndexSet> Distribution::take(const Best& best) {
  const auto take_from = [this](int id, std::int64_t count) {
    const Result<IndexSet> cpus =
        pick_packed(layout_, acc_.free_cpus_in_numa(id), static_cast<std::size_t>(count), spread_, false);
    if (cpus) acc_.take(*cpus);
  };
  const std::int64_t share = share_of(best.combination.size());
  for (std::size_t i = 0; i < best.combination.size(); ++i) take_from(best.combination[i], share);
  std::int64_t remainder = count_ - share * static_cast<std::int64_t>(best.combination.size());
  while (remainder > 0) {
    const std::int64_t before = remainder;
    for (std::size_t i = 0; i < best.remainder.size() && remainder > 0; ++i) {
      if (free_in(best.remainder[i]) < group_) continue;
      take_from(best.remainder[i], group_);
      remainder -= group_;
    }
    if (remainder == before) break;  // kubelet would not come back
  }
  if (acc_.needed() != 0) {
    return Error{std::string("accounting error, ") +
                 (acc_.needed() > 0 ? "not enough CPUs allocated" : "too many CPUs allocated") +
                 ", remaining: " + std::to_string(acc_.needed())};
  }
  return acc_.taken();
}

Result<IndexSet> Distribution::pick() {
  const auto round_up = [](std::int64_t a, std::int64_t b) { return (a - 1) / b + 1; };
  const std::int64_t groups = round_up(static_cast<std::int64_t>(layout_.size()), group_);
  const std::int64_t groups_per_numa = round_up(groups, static_cast<std::int64_t>(layout_.numas.size()));
  const std::int64_t groups_needed = round_up(count_, group_);
  const std::int64_t fewest = round_up(groups_needed, groups_per_numa);
  const auto nodes = static_cast<std::int64_t>(std::set<int>(ids_.begin(), ids_.end()).size());
  const std::int64_t most = std::min(groups_needed, nodes);
  for (std::int64_t k = fewest; k <= most; ++k) {
    Best best;
    combinations(ids_, static_cast<std::size_t>(k), 0, GoSlice{}, [&](const GoSlice& combination) {
      if (best.balance == 0) return false;
      if (fits(combination)) judge(combination, best);
      return true;
    });
    if (best.combination.size() > 0) return take(best);
  }
  return IndexSet{};
}

}  // namespace

Result<IndexSet> pick_cpus(const CpuLayout& layout, const CpuManagerOptions& options, const IndexSet& available,
                           std::size_t count) {
  const bool spread = options.distribute_across_cores;
  if (!options.distribute_across_numa || count == 0) {
    return pick_packed(layout, available, count, spread,
                       options.prefer_align_by_uncore_cache && !options.distribute_across_numa);
  }
  const std::size_t group = options.full_pcpus_only ? layout.per_core() : 1;
  if (count % group != 0) return pick_packed(layout, available, count, spread, false);
  if (count > (available & layout.all).count()) return not_enough(count, available);
  const Result<IndexSet> distributed = Distribution(layout, available, count, group, spread).pick();
  if (!distributed || !distributed->empty()) return distributed;
  return pick_packed(layout, available, count, spread, false);
}

}  // namespace mortise::topology
