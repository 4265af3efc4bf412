#include <algorithm>
#include <variant>

#include "scheduler/extender/gangs.h"

namespace mortise::extender {

using placement::GangDecision;
using placement::GangPlan;
using placement::GangReason;
using placement::GangRejected;

namespace {

/// Each looks at the whole cluster, and all of them are made while others wait.
constexpr int kMaxSearches = 32;

}  // namespace

/// The search with what is reserved for these counted as free.
GangDecision Gangs::search_without(const std::vector<GangRecord*>& others, const Wanted& wanted) {
  return bookings_.try_out([&](placement::ClusterState& cluster) {
    for (const GangRecord* other : others) {
      for (const auto& [uid, member] : other->members) {
        if (is_reserved(uid)) (void)cluster.release(*bookings_.find(uid)->allocation);
      }
    }
    return search(wanted.gang, wanted.batch, wanted.tally, Where::kAllowed);
  });
}

/// Whether the plan uses nodes on which places are reserved for the gang: beside GPUs these hold CPU and memory.
bool Gangs::takes_from(const GangPlan& plan, const GangRecord& other) const {
  return std::any_of(other.members.begin(), other.members.end(), [&](const auto& entry) {
    if (!is_reserved(entry.first)) return false;
    const placement::Allocation& held = *cluster_.allocation(*bookings_.find(entry.first)->allocation);
    return std::any_of(plan.members.begin(), plan.members.end(),
                       [&](const placement::GangMember& member) { return member.node == held.node; });
  });
}

/// Of gangs without whose places it fits, lowest and latest first: as few as will do. Whoever ranks highest is spared
/// first, so the shortest beginning of the list with which it fits ends with one that is needed, and again of those
/// before it. After kMaxSearches only those of the rest are spared whose nodes the plan does not use.
std::vector<GangRecord*> Gangs::who_yields(std::vector<GangRecord*> lower, const Wanted& wanted) {
  std::vector<GangRecord*> needed;
  int searches = 0;
  const auto with_first = [&](std::size_t length) {
    std::vector<GangRecord*> gangs(lower.begin(), lower.begin() + static_cast<std::ptrdiff_t>(length));
    gangs.insert(gangs.end(), needed.begin(), needed.end());
    return gangs;
  };
  while (!lower.empty() && searches < kMaxSearches) {
    std::size_t enough = lower.size();
    std::size_t least = 0;
    std::size_t step = 1;  // most often all but few are needed, or few
    bool bisects = false;
    for (; least < enough && searches < kMaxSearches; ++searches) {
      const std::size_t length = bisects ? least + (enough - least) / 2 : enough - std::min(step, enough - least);
      if (std::holds_alternative<GangPlan>(search_without(with_first(length), wanted))) {
        enough = length;
        step *= 2;
      } else {
        least = length + 1;
        bisects = true;
      }
    }
    lower.resize(enough);
    if (least < enough || lower.empty()) break;
    needed.push_back(lower.back());
    lower.pop_back();
  }
  if (lower.empty()) return needed;
  const GangDecision decision = search_without(with_first(lower.size()), wanted);
  if (const auto* plan = std::get_if<GangPlan>(&decision)) {
    std::erase_if(lower, [&](const GangRecord* other) { return !takes_from(*plan, *other); });
  }
  return with_first(lower.size());
}

/// Places that are only reserved for gangs of lower priority count as free: as few gangs as there is a need for, those
/// of the lowest priority and that came last. They give them back when the search succeeds.
GangDecision Gangs::search_yielding(const Wanted& wanted) {
  std::vector<GangRecord*> lower;
  for (auto& [key, other] : gangs_) {
    if (priority(other) < priority(wanted.gang) && phase(other) == GangPhase::kReserved) lower.push_back(&other);
  }
  std::sort(lower.begin(), lower.end(), [&](const GangRecord* a, const GangRecord* b) { return ranks_before(*b, *a); });
  if (lower.empty() || !std::holds_alternative<GangPlan>(search_without(lower, wanted))) {
    return GangRejected{GangReason::kNoRoom, {}};
  }
  for (GangRecord* other : who_yields(std::move(lower), wanted)) {
    release(*other);
    ++figures_.yielded;
  }
  return search(wanted.gang, wanted.batch, wanted.tally, Where::kAllowed);
}

}  // namespace mortise::extender
