#include "scheduler/placement/cover.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace mortise::placement {

namespace {
constexpr std::int64_t kDenseSteps = std::int64_t{1} << 20;
constexpr std::size_t kBeam = 32;

using Order = std::vector<std::size_t>;

void count_used(std::span<const Part> parts, Cover& found) {
  found.used = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!found.takes[i].empty() && !parts[i].in_use) ++found.used;
  }
}

std::vector<std::size_t> kinds_in(const Mix& target) {
  std::vector<std::size_t> kinds;
  for (std::size_t k = 0; k < kMaxKinds; ++k) {
    if (target.of[k] > 0) kinds.push_back(k);
  }
  return kinds;
}

/// One kind. The largest parts first, until one is enough for the rest: that is then the smallest such. No fewer do,
/// for no other choice of as many parts holds more.
std::optional<Cover> cover_one_kind(std::span<const Part> parts, const Mix& target, std::size_t kind) {
  std::vector<std::uint32_t> room(parts.size(), 0);
  Order order;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const Mix& mix : *parts[i].room) room[i] = std::max<std::uint32_t>(room[i], mix.of[kind]);
    if (room[i] > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(!parts[a].in_use, room[b], parts[a].cost, a) <
           std::tuple(!parts[b].in_use, room[a], parts[b].cost, b);
  });
  Cover found{std::vector<Mix>(parts.size()), 0};
  std::uint32_t rest = target.of[kind];
  for (std::size_t at = 0; at < order.size() && rest > 0; ++at) {
    std::size_t part = order[at];
    if (room[part] >= rest) {
      // Of those that are enough, the first of the smallest; all of them are from here on and before smaller ones.
      for (std::size_t i = at; i < order.size() && room[order[i]] >= rest; ++i) {
        if (parts[order[i]].in_use != parts[part].in_use) break;
        if (room[order[i]] < room[part]) part = order[i];
      }
    }
    const std::uint32_t taken = std::min(rest, room[part]);
    found.takes[part].of[kind] = static_cast<std::uint16_t>(taken);
    rest -= taken;
  }
  if (rest > 0) return std::nullopt;
  count_used(parts, found);
  return found;
}

/// Every mix up to the target has a number; best found for each, part after part.
class DenseCover {
 public:
  DenseCover(std::span<const Part> parts, const Mix& target)
      : parts_(parts), target_(target), kinds_(kinds_in(target)) {
    for (const std::size_t kind : kinds_) {
      stride_.push_back(size_);
      size_ *= std::size_t{target.of[kind]} + 1;
      if (size_ > static_cast<std::size_t>(kDenseSteps)) break;
    }
  }

  std::int64_t steps() const {
    std::size_t options = 0;
    for (const Part& part : parts_) options += part.room->size() + 1;
    return static_cast<std::int64_t>(std::min<std::size_t>(options, kDenseSteps) * size_);
  }

  std::optional<Cover> run();

 private:
  using Value = std::pair<std::int64_t, std::int64_t>;  // parts used, cost

  std::size_t add(std::size_t number, const Mix& option) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const std::size_t most = target_.of[kinds_[i]];
      const std::size_t have = number / stride_[i] % (most + 1);
      sum += std::min(most, have + option.of[kinds_[i]]) * stride_[i];
    }
    return sum;
  }
  Mix mix(std::size_t number) const {
    Mix found;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      found.of[kinds_[i]] = static_cast<std::uint16_t>(number / stride_[i] % (std::size_t{target_.of[kinds_[i]]} + 1));
    }
    return found;
  }

  std::span<const Part> parts_;
  Mix target_;
  std::vector<std::size_t> kinds_;
  std::vector<std::size_t> stride_;
  std::size_t size_ = 1;
};

std::optional<Cover> DenseCover::run() {
  constexpr Value kNever{std::numeric_limits<std::int64_t>::max(), 0};
  std::vector<Value> best(size_, kNever);
  std::vector<Value> next;
  std::vector<std::uint32_t> from(parts_.size() * size_);
  best[0] = {0, 0};
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    std::uint32_t* came = from.data() + i * size_;
    std::iota(came, came + size_, 0U);
    next = best;
    for (const Mix& option : *parts_[i].room) {
      if (option.empty()) continue;
      for (std::size_t v = 0; v < size_; ++v) {
        if (best[v] == kNever) continue;
        const std::size_t sum = add(v, option);
        const Value value{best[v].first + (parts_[i].in_use ? 0 : 1), best[v].second + parts_[i].cost};
        if (sum == v || value >= next[sum]) continue;
        next[sum] = value;
        came[sum] = static_cast<std::uint32_t>(v);
      }
    }
    best.swap(next);
  }
  if (best[size_ - 1] == kNever) return std::nullopt;
  Cover found{std::vector<Mix>(parts_.size()), 0};
  std::size_t at = size_ - 1;
  for (std::size_t i = parts_.size(); i-- > 0;) {
    const std::size_t before = from[i * size_ + at];
    found.takes[i] = difference(mix(at), mix(before));
    at = before;
  }
  count_used(parts_, found);
  return found;
}

/// Several kinds and many parts: the roomiest parts first, keeping the largest mixes reached so far, until one of them
/// is the target.
class PrefixCover {
 public:
  PrefixCover(std::span<const Part> parts, const Mix& target, std::span<const std::int64_t> weights)
      : parts_(parts), target_(target), weights_(weights) {}

  std::optional<Cover> run(SearchBudget& budget);

 private:
  struct Link {
    Mix sum;
    std::uint32_t before = 0;
    std::size_t part = 0;
  };

  std::int64_t worth(const Mix& mix) const {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < weights_.size(); ++k) sum += weights_[k] * std::min(mix.of[k], target_.of[k]);
    return sum;
  }
  std::int64_t worth_of(std::size_t part) const {
    std::int64_t most = 0;
    for (const Mix& mix : *parts_[part].room) most = std::max(most, worth(mix));
    return most;
  }
  void extend(std::size_t part);
  Cover trace(std::uint32_t link) const;
  void tighten_last(Cover& found, std::size_t last) const;

  std::span<const Part> parts_;
  Mix target_;
  std::span<const std::int64_t> weights_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> reached_;  // into links_, descending by sum
};

void PrefixCover::extend(std::size_t part) {
  std::vector<std::uint32_t> all = reached_;
  for (const std::uint32_t link : reached_) {
    for (const Mix& option : *parts_[part].room) {
      const Mix sum = capped_sum(links_[link].sum, option, target_);
      if (sum == links_[link].sum) continue;
      all.push_back(static_cast<std::uint32_t>(links_.size()));
      links_.push_back({sum, link, part});
    }
  }
  std::sort(all.begin(), all.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(std::cref(links_[b].sum), a) < std::tuple(std::cref(links_[a].sum), b);
  });
  reached_.clear();
  std::size_t larger = 0;  // mostly the one that covered the sum before covers this one, too
  for (const std::uint32_t link : all) {
    const auto covered_by = [&](std::size_t at) { return links_[reached_[at]].sum.covers(links_[link].sum); };
    if (!reached_.empty() && covered_by(larger)) continue;
    for (larger = 0; larger < reached_.size() && !covered_by(larger);) ++larger;
    if (larger == reached_.size()) reached_.push_back(link);
  }
  if (reached_.size() <= kBeam) return;
  const std::size_t last = reached_.size() - 1;
  for (std::size_t i = 0; i < kBeam; ++i) reached_[i] = reached_[i * last / (kBeam - 1)];
  reached_.resize(kBeam);
}

Cover PrefixCover::trace(std::uint32_t link) const {
  Cover found{std::vector<Mix>(parts_.size()), 0};
  for (std::uint32_t at = link; at != 0; at = links_[at].before) {
    found.takes[links_[at].part] = difference(links_[at].sum, links_[links_[at].before].sum);
  }
  return found;
}

/// The part that came last need not be the roomiest one.
void PrefixCover::tighten_last(Cover& found, std::size_t last) const {
  const Mix rest = found.takes[last];
  std::size_t best = last;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i != last && (!found.takes[i].empty() || parts_[i].in_use != parts_[last].in_use)) continue;
    const bool enough =
        std::any_of(parts_[i].room->begin(), parts_[i].room->end(), [&](const Mix& mix) { return mix.covers(rest); });
    if (!enough) continue;
    if (std::tuple(worth_of(i), parts_[i].cost, i) < std::tuple(worth_of(best), parts_[best].cost, best)) best = i;
  }
  found.takes[last] = {};
  found.takes[best] = rest;
}

std::optional<Cover> PrefixCover::run(SearchBudget& budget) {
  std::vector<std::int64_t> worths(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) worths[i] = worth_of(i);
  Order order(parts_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(!parts_[a].in_use, worths[b], parts_[a].cost, a) <
           std::tuple(!parts_[b].in_use, worths[a], parts_[b].cost, b);
  });
  links_ = {Link{}};
  reached_ = {0};
  for (const std::size_t part : order) {
    if (worths[part] == 0) break;
    budget.steps -= static_cast<std::int64_t>(reached_.size() * parts_[part].room->size());
    extend(part);
    // Nothing is larger than the target, so it comes first.
    if (links_[reached_.front()].sum != target_) continue;
    Cover found = trace(reached_.front());
    if (!found.takes[part].empty()) tighten_last(found, part);
    count_used(parts_, found);
    return found;
  }
  return std::nullopt;
}
}  // namespace

std::optional<Cover> cover(std::span<const Part> parts, const Mix& target, std::span<const std::int64_t> weights,
                           SearchBudget& budget) {
  const std::vector<std::size_t> kinds = kinds_in(target);
  if (kinds.empty()) return Cover{std::vector<Mix>(parts.size()), 0};
  if (kinds.size() == 1) return cover_one_kind(parts, target, kinds.front());
  DenseCover dense(parts, target);
  if (dense.steps() <= std::min(kDenseSteps, budget.steps)) {
    budget.steps -= dense.steps();
    return dense.run();
  }
  return PrefixCover(parts, target, weights).run(budget);
}

}  // namespace mortise::placement
