#include "scheduler/kube/objects/gang_terms.h"

#include <iterator>

namespace mortise::kube {
namespace {

template <class Key>
void count_in(std::map<Key, int>& counts, const Key& key, int sign) {
  const auto entry = counts.try_emplace(key, 0).first;
  entry->second += sign;
  if (entry->second == 0) counts.erase(entry);
}

void take_levels(const std::vector<TopologyAsk>& asks, GangSaying& saying) {
  for (const TopologyAsk& ask : asks) {
    if (ask.level.empty()) continue;
    (ask.required ? saying.required_levels : saying.preferred_levels).push_back(ask.level);
  }
}

}  // namespace

GangSaying saying_of(const GangRef& gang) {
  GangSaying saying;
  saying.identity = gang.identity;
  if (gang.waits_for.empty()) saying.minimum = gang.minimum;
  for (const GangRole& role : gang.roles) take_levels(role.topology, saying);
  take_levels(gang.topology, saying);
  return saying;
}

void GangTerms::count(const GangSaying& saying, int sign) {
  members_ += sign;
  if (saying.minimum > 0) count_in(minima_, std::pair(saying.identity, saying.minimum), sign);
  for (const std::string& level : saying.required_levels) count_in(required_, level, sign);
  for (const std::string& level : saying.preferred_levels) count_in(preferred_, level, sign);
}

std::string GangTerms::conflict() const {
  for (auto next = minima_.begin(); next != minima_.end();) {
    const auto& [identity, minimum] = (next++)->first;
    if (next == minima_.end() || next->first.first != identity) continue;
    return "members say that " + std::to_string(minimum) + " and that " + std::to_string(next->first.second) +
           " must start together; give all of them one minimum";
  }
  if (required_.size() > 1) {
    return "it must be in one " + required_.begin()->first + " and in one " + std::next(required_.begin())->first +
           "; one level may be required";
  }
  return {};
}

}  // namespace mortise::kube
