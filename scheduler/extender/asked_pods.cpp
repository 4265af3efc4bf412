#include "scheduler/extender/asked_pods.h"

#include <algorithm>

namespace mortise::extender {
namespace {

constexpr Nanoseconds kFirstAside = 60 * kSecond;
constexpr Nanoseconds kLongestAside = 600 * kSecond;

}  // namespace

void AskedPod::set_aside(NodeId node, Nanoseconds now) {
  const auto found = std::find_if(aside_.begin(), aside_.end(), [&](const Aside& a) { return a.node == node; });
  if (found == aside_.end()) {
    aside_.push_back({node, now + kFirstAside, kFirstAside});
    return;
  }
  found->span = std::min(2 * found->span, kLongestAside);
  found->until = now + found->span;
}

std::optional<Nanoseconds> AskedPod::aside_until(NodeId node, Nanoseconds now) const {
  for (const Aside& aside : aside_) {
    if (aside.node == node && aside.until > now) return aside.until;
  }
  return std::nullopt;
}

AskedPod& AskedPods::touch(std::string_view uid, Nanoseconds now) {
  forget(now);
  const auto found = by_uid_.find(uid);
  if (found != by_uid_.end()) {
    by_age_.splice(by_age_.end(), by_age_, found->second);
    found->second->last_ask = now;
    return found->second->pod;
  }
  if (by_uid_.size() >= max_pods_) {
    by_uid_.erase(by_age_.front().uid);
    by_age_.pop_front();
  }
  by_age_.push_back({std::string(uid), now, {}});
  const auto added = std::prev(by_age_.end());
  by_uid_.emplace(added->uid, added);
  return added->pod;
}

AskedPod* AskedPods::find(std::string_view uid, Nanoseconds now) {
  forget(now);
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : &found->second->pod;
}

const AskedPod* AskedPods::find_named(std::string_view ns, std::string_view name, Nanoseconds now) {
  forget(now);
  const auto found = std::find_if(by_age_.rbegin(), by_age_.rend(), [&](const Entry& entry) {
    const placement::PodRequest& pod = entry.pod.request;
    return pod.name == name && (pod.ns.empty() ? "default" : pod.ns) == ns;
  });
  return found == by_age_.rend() ? nullptr : &found->pod;
}

void AskedPods::erase(std::string_view uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  const auto entry = found->second;
  by_uid_.erase(found);
  by_age_.erase(entry);
}

void AskedPods::forget(Nanoseconds now) {
  while (!by_age_.empty() && now - by_age_.front().last_ask >= kForgottenAfter) {
    by_uid_.erase(by_age_.front().uid);
    by_age_.pop_front();
  }
}

}  // namespace mortise::extender
