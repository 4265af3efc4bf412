#include "scheduler/extender/gang_recovery.h"

#include <iterator>
#include <utility>

namespace mortise::extender {

using kube::Outcome;

/// False: some may be had if they are asked for again.
bool GangRecovery::read(const std::set<PlanMapName>& names) {
  for (const PlanMapName& name : names) {
    if (texts_.contains(name)) continue;
    const kube::Answer<std::string> answer = store_.read(name);
    if (answer.done()) {
      texts_.emplace(name, *answer.value);
    } else if (answer.outcome == Outcome::kNotFound || answer.outcome == Outcome::kRefused) {
      texts_.emplace(name, Error{answer.detail});
    } else if (clock_.now() - *since_ < kPatience) {
      return false;
    } else {
      for (const PlanMapName& left : names) texts_.emplace(left, Error{answer.detail});
    }
  }
  return true;
}

void GangRecovery::step() {
  if (!why_not_().empty()) {
    done_ = false;
    since_.reset();
    texts_.clear();
    return;
  }
  if (done_) return;
  if (!since_) since_ = clock_.now();
  std::set<PlanMapName> names;
  {
    const std::lock_guard lock(mutex_);
    names = gangs_.maps_claimed(feed_.claims());
  }
  if (!read(names)) return;
  const std::lock_guard lock(mutex_);
  std::vector<RefusedSlot> refused = gangs_.restore(feed_.claims(), texts_);
  std::move(refused.begin(), refused.end(), std::back_inserter(refused_));
  done_ = true;
}

std::vector<RefusedSlot> GangRecovery::take_refused() {
  const std::lock_guard lock(mutex_);
  return std::exchange(refused_, {});
}

}  // namespace mortise::extender
