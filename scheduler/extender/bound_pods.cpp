#include "scheduler/extender/bound_pods.h"

#include <algorithm>
#include <utility>

namespace mortise::extender {

void BoundPods::put(BoundPod pod) {
  erase(pod.uid);
  std::string uid = pod.uid;
  const BoundPod& kept = by_uid_.emplace(std::move(uid), std::move(pod)).first->second;
  by_node_[kept.node].push_back(&kept);
}

void BoundPods::erase(std::string_view uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  const auto node = by_node_.find(found->second.node);
  std::vector<const BoundPod*>& here = node->second;
  *std::find(here.begin(), here.end(), &found->second) = here.back();
  here.pop_back();
  if (here.empty()) by_node_.erase(node);
  by_uid_.erase(found);
}

const BoundPod* BoundPods::find(std::string_view uid) const {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : &found->second;
}

const std::vector<const BoundPod*>& BoundPods::on_node(std::string_view node) const {
  static const std::vector<const BoundPod*> kNone;
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? kNone : found->second;
}

}  // namespace mortise::extender
