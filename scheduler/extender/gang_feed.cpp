#include "scheduler/extender/gang_feed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/extender/asked_pods.h"
#include "scheduler/placement/gang.h"

namespace mortise::extender {
namespace {

constexpr std::size_t kGoneKnown = 16'384;

using kube::GangConvention;
using kube::GangRef;

std::string joint_name(const GangRef& gang) {
  std::string all;
  for (const std::string& name : gang.together) all += (all.empty() ? "" : "+") + name;
  return all;
}

std::string key_of(const GangRef& gang) {
  if (gang.together.size() < 2) return gang.key();
  return std::string(kube::gang_convention_name(gang.convention)) + ":" + joint_name(gang);
}

void take_terms(const kube::GangTerms& terms, GangSpec& spec) {
  spec.required_level = terms.required_level();
  spec.preferred_level = terms.preferred_level();
  if (spec.invalid.empty()) spec.invalid = terms.conflict();
}

std::string selector_text(const kube::Pod& pod) {
  std::string text;
  for (const auto& [key, value] : pod.node_selector) text += key + "=" + value + ",";
  return text;
}

std::pair<std::string, std::string> name_of(const kube::Pod& pod) {
  return {pod.ns.empty() ? "default" : pod.ns, pod.name};
}

/// What the recognition of its gang looks at.
kube::Pod without_containers(const kube::Pod& pod) {
  kube::Pod kept = pod;
  kept.scheduled = {};
  return kept;
}

}  // namespace

GangSpec GangFeed::spec_of(const GangRef& gang, const placement::PodRequest& pod) {
  GangSpec spec;
  spec.key = key_of(gang);
  spec.name = gang.identity;
  spec.convention = kube::gang_convention_name(gang.convention);
  spec.minimum = gang.minimum;
  spec.waits_for = gang.waits_for;
  spec.object = gang.object;
  for (const kube::GangRole& role : gang.roles) {
    if (role.minimum > 0) spec.roles.push_back({role.name, role.minimum});
  }
  if (gang.priority || !gang.priority_class.empty()) {
    const Result<std::int32_t> priority = kube::gang_priority(gang, objects_, {&pod.priority, 1});
    if (priority.ok()) {
      spec.priority = *priority;
    } else {
      spec.invalid = priority.message();
    }
  }
  if (gang.together.size() > 1) join(gang, spec);
  if (spec.minimum > placement::kMaxGangMembers && spec.invalid.empty()) {
    spec.invalid = "needs " + std::to_string(spec.minimum) + " members together; " +
                   std::to_string(placement::kMaxGangMembers) + " are the most that are placed as one";
  }
  return spec;
}

/// Gangs that start together are one, each of them a role of it.
void GangFeed::join(const GangRef& gang, GangSpec& spec) {
  std::map<std::string, std::int32_t>& minima = said_[spec.key].minima;
  if (spec.waits_for.empty()) minima[gang.identity] = gang.minimum;
  spec.name = joint_name(gang);
  spec.object = {};
  std::int64_t together = 0;
  spec.roles.clear();
  for (const std::string& name : gang.together) {
    const auto known = minima.find(name);
    if (known == minima.end()) {
      if (spec.waits_for.empty()) spec.waits_for = "waits for gang " + name + ", with which it starts together";
      continue;
    }
    together += known->second;
    spec.roles.push_back({name, known->second});
  }
  spec.minimum = static_cast<std::int32_t>(std::min<std::int64_t>(together, std::numeric_limits<std::int32_t>::max()));
  if (together <= placement::kMaxGangMembers || !spec.invalid.empty()) return;
  spec.invalid = "its " + std::to_string(spec.roles.size()) + " gangs need " + std::to_string(together) +
                 " members together; " + std::to_string(placement::kMaxGangMembers) +
                 " are the most that are placed as one";
}

/// What the member says now counts in its gang; true: that is another than before.
bool GangFeed::say(Known& member, const GangRef& gang) {
  const std::string key = key_of(gang);
  kube::GangSaying says = kube::saying_of(gang);
  if (member.gang == key && member.says == says) return false;
  const bool moves = member.gang != key;
  said_[key].terms.add(says);  // first: what the gang of its only member said is not forgotten in between
  unsay(member);
  member.gang = key;
  member.says = std::move(says);
  return moves;
}

void GangFeed::unsay(Known& member) {
  const auto gang = said_.find(std::exchange(member.gang, {}));
  if (gang == said_.end()) return;
  gang->second.terms.drop(member.says);
  if (gang->second.terms.empty()) said_.erase(gang);
}

/// One member less, or other words of one, may end a conflict.
void GangFeed::tell_terms(const std::string& key) {
  const auto gang = said_.find(key);
  if (gang == said_.end()) return;
  GangSpec spec = gang->second.spec;
  take_terms(gang->second.terms, spec);
  gangs_.respecify(spec);
}

Result<bool> GangFeed::see(const kube::Pod& pod) {
  forget_unasked();
  const bool is_gone = gone_.contains(pod.uid);
  if (!is_gone) end_namesake(pod);
  const Result<std::optional<GangRef>> gang = kube::recognise_gang(pod, objects_);
  if (!gang.ok()) return gang.error();
  if (!gang->has_value() || (*gang)->convention == GangConvention::kNativePodGroup) {
    if (gangs_.is_member(pod.uid)) leave(pod.uid);
    return false;
  }
  if (is_gone) return Error{"the pod is gone"};
  if (pod.uid.empty()) return Error{"the pod has no UID, by which members are told apart"};
  Result<placement::PodRequest> request = kube::pod_request(pod);
  if (!request.ok()) return false;
  Known& known = remember(pod);
  const std::string before = known.gang;
  const bool moves = say(known, **gang);
  Said& said = said_[known.gang];
  said.spec = spec_of(**gang, *request);
  GangSpec spec = said.spec;
  take_terms(said.terms, spec);
  if (moves) tell_terms(before);
  gangs_.see(spec, {*request, (*gang)->together.size() > 1 ? (*gang)->identity : (*gang)->role, selector_text(pod),
                    pod.preemption_policy != "Never"});
  return true;
}

/// No two pods have one name at one time: the UID that is heard of last is the one that is there.
void GangFeed::end_namesake(const kube::Pod& pod) {
  const auto other = by_name_.find(name_of(pod));
  if (pod.uid.empty() || other == by_name_.end() || other->second == pod.uid) return;
  const std::string uid = other->second;
  gone(uid);
  gangs_.free_place(uid);
}

GangFeed::Known& GangFeed::remember(const kube::Pod& pod) {
  const auto [entry, is_new] = pods_.try_emplace(pod.uid, Known{{}, lists_begun_});
  Known& known = entry->second;
  if (!is_new && name_of(known.pod) != name_of(pod)) by_name_.erase(name_of(known.pod));
  known.pod = without_containers(pod);
  by_name_[name_of(pod)] = pod.uid;
  if (clock_ == nullptr) return known;
  by_asked_.erase({known.asked, pod.uid});
  known.asked = clock_->now();
  by_asked_.emplace(known.asked, pod.uid);
  return known;
}

void GangFeed::forget_unasked() {
  if (clock_ == nullptr) return;
  const Nanoseconds now = clock_->now();
  while (!by_asked_.empty() && now - by_asked_.begin()->first >= AskedPods::kForgottenAfter) {
    const std::string uid = by_asked_.begin()->second;
    if (!gangs_.has_place(uid)) {
      leave(uid);
      continue;
    }
    by_asked_.erase(by_asked_.begin());
    pods_.find(uid)->second.asked = now;
    by_asked_.emplace(now, uid);
  }
}

void GangFeed::update(const kube::Pod& pod) {
  const bool leaves = pod.node_name.empty() && (pod.deleting || pod.gated);
  if (pod.phase == "Failed" || leaves) return leave(pod.uid);
  const Result<bool> member = see(pod);
  if (member.ok() && *member && pod.phase == "Succeeded") gangs_.succeeded(pod.uid);
}

std::vector<SlotClaim> GangFeed::claims() const {
  std::vector<SlotClaim> found;
  for (const auto& [uid, known] : pods_) {
    const auto slot = known.pod.annotations.find(std::string(kGangSlotAnnotation));
    // What waits may have been given any annotation by who made it.
    if (!known.pod.node_name.empty() && slot != known.pod.annotations.end()) found.push_back({uid, slot->second});
  }
  return found;
}

void GangFeed::gone(std::string_view uid) {
  if (!gangs_.is_member(uid)) return;
  leave(uid);
  gone_in_order_.emplace_back(uid);
  gone_.emplace(uid);
  if (gone_in_order_.size() <= kGoneKnown) return;
  gone_.erase(gone_.find(gone_in_order_.front()));
  gone_in_order_.pop_front();
}

void GangFeed::leave(std::string_view uid) {
  gangs_.gone(uid);
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  const auto named = by_name_.find(name_of(pod->second.pod));
  if (named != by_name_.end() && named->second == uid) by_name_.erase(named);
  by_asked_.erase({pod->second.asked, pod->first});
  const std::string key = pod->second.gang;
  unsay(pod->second);
  pods_.erase(pod);
  tell_terms(key);
}

void GangFeed::keep_only(const std::unordered_set<std::string_view>& uids, bool announced) {
  std::vector<std::string> left;
  for (const auto& [uid, known] : pods_) {
    const bool expected = !announced || known.lists_begun < lists_begun_;
    if (expected && !uids.contains(uid)) left.push_back(uid);
  }
  for (const std::string& uid : left) gone(uid);
}

/// Members whose group it may be hear of it, all of them at once: they say the same before and after.
void GangFeed::look_again(kube::GroupKind kind, std::string_view ns) {
  std::vector<kube::Pod> concerned;
  for (auto& [uid, known] : pods_) {
    const std::string_view of = known.pod.ns.empty() ? std::string_view("default") : std::string_view(known.pod.ns);
    if (kind != kube::GroupKind::kPriorityClass && of != ns) continue;
    concerned.push_back(known.pod);
    const Result<std::optional<GangRef>> gang = kube::recognise_gang(known.pod, objects_);
    if (gang.ok() && gang->has_value() && key_of(**gang) == known.gang) say(known, **gang);
  }
  for (const kube::Pod& pod : concerned) (void)see(pod);
}

void GangFeed::put(std::string_view api_group, const kube::GroupObject& object) {
  names_[{object.kind, std::string(api_group)}].emplace(object.ns, object.name);
  const kube::GroupObject* known = objects_.find(object.kind, object.ns, object.name);
  if (known != nullptr && *known == object) return;
  objects_.put(object);
  look_again(object.kind, object.ns);
}

void GangFeed::remove(std::string_view api_group, kube::GroupKind kind, std::string_view ns, std::string_view name) {
  names_[{kind, std::string(api_group)}].erase({std::string(ns), std::string(name)});
  if (objects_.find(kind, ns, name) == nullptr) return;
  objects_.remove(kind, ns, name);
  look_again(kind, ns);
}

void GangFeed::replace(kube::GroupKind kind, std::string_view api_group,
                       const std::vector<kube::GroupObject>& objects) {
  std::set<std::pair<std::string, std::string>> names;
  for (const kube::GroupObject& object : objects) {
    names.emplace(object.ns, object.name);
    put(api_group, object);
  }
  const auto known = names_[{kind, std::string(api_group)}];
  for (const auto& [ns, name] : known) {
    if (!names.contains({ns, name})) remove(api_group, kind, ns, name);
  }
}

}  // namespace mortise::extender
