#include "scheduler/extender/group_trials.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mortise::extender {
namespace {

auto with_uid(std::string_view uid) {
  return [uid](const TrialMember& member) { return member.pod.uid == uid; };
}

}  // namespace

void GroupTrials::forget(std::list<Trial>::iterator trial) {
  members_ -= trial->members.size();
  by_group_.erase(trial->group);
  by_age_.erase(trial);
}

GroupTrials::Trial* GroupTrials::find(std::string_view group, Nanoseconds now) {
  while (!by_age_.empty() && now - by_age_.front().last >= kEndsAfter) forget(by_age_.begin());
  const auto found = by_group_.find(group);
  return found == by_group_.end() ? nullptr : &*found->second;
}

void GroupTrials::ask(std::string_view group, std::string_view uid, Nanoseconds now) {
  Trial* trial = find(group, now);
  if (trial == nullptr) return;
  const auto member = std::find_if(trial->members.begin(), trial->members.end(), with_uid(uid));
  if (member == trial->members.end()) return;
  if (std::next(member) == trial->members.end() && member->refused_alone) {
    trial->members.pop_back();
    --members_;
  } else {
    forget(by_group_.find(group)->second);
  }
}

void GroupTrials::tell(std::string_view group, TrialMember member) {
  Trial* trial = find(group, member.asked);
  while (members_ >= max_members_ && !by_age_.empty() && &by_age_.front() != trial) forget(by_age_.begin());
  if (members_ >= max_members_) return;
  if (trial == nullptr) {
    by_age_.push_back({std::string(group), {}, 0});
    const auto added = std::prev(by_age_.end());
    by_group_.emplace(added->group, added);
    trial = &*added;
  } else {
    by_age_.splice(by_age_.end(), by_age_, by_group_.find(group)->second);
  }
  trial->last = member.asked;
  trial->members.push_back(std::move(member));
  ++members_;
}

void GroupTrials::settle(std::string_view group, std::string_view uid) {
  const auto found = by_group_.find(group);
  if (found == by_group_.end()) return;
  std::vector<TrialMember>& members = found->second->members;
  const auto member = std::find_if(members.begin(), members.end(), with_uid(uid));
  if (member != members.end()) member->placed.reset();
}

std::vector<const TrialMember*> GroupTrials::others(std::string_view group, std::string_view uid, Nanoseconds now) {
  std::vector<const TrialMember*> found;
  const Trial* trial = find(group, now);
  if (trial == nullptr) return found;
  for (const TrialMember& member : trial->members) {
    if (member.pod.uid != uid && now - member.asked < kEndsAfter) found.push_back(&member);
  }
  return found;
}

}  // namespace mortise::extender
