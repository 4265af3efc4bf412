#include <algorithm>
#include <utility>

#include "scheduler/extender/gangs.h"
#include "scheduler/placement/preemption.h"

namespace mortise::extender {
namespace {

/// Gangs that are woken at once when something becomes free.
constexpr std::size_t kWokenAtOnce = 32;
/// Members that wait to be woken; whoever is left out is woken the next time.
constexpr std::size_t kMaxKicks = 65'536;

}  // namespace

/// Whose turn it is: the higher priority, then whoever has begun, then who came first.
bool Gangs::ranks_before(const GangRecord& a, const GangRecord& b) const {
  const std::int32_t of_a = priority(a);
  const std::int32_t of_b = priority(b);
  if (of_a != of_b) return of_a > of_b;
  const bool begun_a = tally(a).holds_on();
  const bool begun_b = tally(b).holds_on();
  if (begun_a != begun_b) return begun_a;
  return a.order < b.order;
}

void Gangs::kick(const Entry& member, const std::string& state) {
  const auto& [uid, record] = member;
  if (kicks_.size() >= kMaxKicks || !kicked_uids_.insert(uid).second) return;
  // Different from what a former extender wrote, so that the pod does change.
  const std::string moment = std::to_string(clock_.since_1970() / kSecond);
  kicks_.push_back({record.pod.request.ns, record.pod.request.name, uid, state + "." + moment});
}

std::optional<GangKick> Gangs::next_kick() {
  while (!kicks_.empty()) {
    GangKick next = std::move(kicks_.front());
    kicks_.pop_front();
    kicked_uids_.erase(kicked_uids_.find(next.uid));
    if (!is_member(next.uid)) continue;
    const Booking* booking = bookings_.find(next.uid);
    if (booking == nullptr || booking->stage == Booking::Stage::kReserved) return next;
  }
  return std::nullopt;
}

/// One member of each kind, so that it is known where that may go. Not the same gang again at once: being asked about
/// and refused, its members wait longer each time.
void Gangs::kick_scouts(GangRecord& gang, const Batch& batch, const Entry* asker) {
  const Nanoseconds now = clock_.now();
  if (gang.kicked && now - *gang.kicked < times_.kick_gap) return;
  gang.kicked = now;
  gang.kicked_for = freed_;
  const std::string state = "retry-" + std::to_string(epoch_);
  for (const auto& [kind, members] : batch) {
    if (asker == nullptr || asker->second.kind != kind) kick(*members.front(), state);
  }
}

/// kube-scheduler asks again by itself when a pod is gone, but maybe before we know of it; and it knows nothing of
/// places that were only held.
void Gangs::wake_blocked() {
  const Nanoseconds now = clock_.now();
  std::vector<GangRecord*> blocked;
  bool some_left = false;
  for (auto& [key, gang] : gangs_) {
    if (!gang.refusal || gang.refusal->freed == freed_ || gang.kicked_for == freed_ || !may_be_placed(gang)) continue;
    if (gang.refusal->reason != placement::GangReason::kNoRoom && !nodes_changed_) continue;
    if (gang.kicked && now - *gang.kicked < times_.kick_gap) {
      some_left = true;
    } else {
      blocked.push_back(&gang);
    }
  }
  std::sort(blocked.begin(), blocked.end(),
            [&](const GangRecord* a, const GangRecord* b) { return ranks_before(*a, *b); });
  if (blocked.size() > kWokenAtOnce) {
    blocked.resize(kWokenAtOnce);
    some_left = true;
  }
  waking_ = some_left;
  nodes_changed_ = nodes_changed_ && some_left;
  for (GangRecord* gang : blocked) {
    const Tally& members = tally(*gang);
    if (complete(*gang, members) && members.waiting > 0) kick_scouts(*gang, batch_of(*gang, nullptr, members));
  }
}

bool Gangs::kept_from(NodeId node, std::string_view uid, std::int32_t priority) const {
  const auto gang = gang_of_.find(uid);
  return is_for_another(node, gang == gang_of_.end() ? std::string_view() : std::string_view(gang->second), priority);
}

/// The node is kept or held for a gang, and this is not the gang, nor of a higher priority.
bool Gangs::is_for_another(NodeId node, std::string_view gang, std::int32_t priority) const {
  if (kept_ && kept_->gang != gang && kept_->priority >= priority && kept_->nodes.contains(node)) return true;
  const auto held = held_.find(node);
  if (held == held_.end() || held->second == gang) return false;
  return gangs_.find(held->second)->second.preemption->priority >= priority;
}

/// What a gang lacks, in GPUs.
struct Gangs::Lack {
  std::int64_t gpus = 0;
  std::int32_t largest = 0;  // of one member
  std::set<ShapeId> shapes{};
};

Gangs::Lack Gangs::lack_of(GangRecord& gang) {
  Lack lack;
  for (const auto& [kind, members] : batch_of(gang, nullptr, tally(gang))) {
    const placement::PodRequest& pod = members.front()->second.pod.request;
    lack.gpus += static_cast<std::int64_t>(members.size()) * pod.gpus;
    lack.largest = std::max(lack.largest, pod.gpus);
    lack.shapes.insert(cluster_.intern(pod));
  }
  return lack;
}

/// The nodes that could ever take a member, by domain of the level.
std::map<std::uint64_t, std::vector<Gangs::KeepableNode>> Gangs::keepable(const Lack& lack, int level) const {
  const bool single = level == domains_.node_level();
  std::map<std::uint64_t, std::vector<KeepableNode>> by_domain;
  for (std::uint32_t i = 0; i < cluster_.node_count(); ++i) {
    const NodeId id{i};
    if (!domains_.knows(id) || cluster_.find_node(cluster_.node_name(id)) != id) continue;
    const bool useful = std::any_of(lack.shapes.begin(), lack.shapes.end(), [&](ShapeId shape) {
      return !placement::is_unresolvable(node_reason(cluster_, id, shape));
    });
    const placement::Machine& machine = cluster_.machine_of(id);
    const std::int64_t holds = (machine.gpus - machine.gpus_lost) / lack.largest * lack.largest;
    if (!useful || holds == 0) continue;
    by_domain[single ? i : domains_.domain_of(id, level).value].push_back(
        {cluster_.state_of(id).whole_free(), holds, id});
  }
  return by_domain;
}

/// Nodes that would hold what the gang lacks if nothing else were on them: as few as will do, those with the most free,
/// of one domain if it must be one. Nothing: no domain is large enough, or it asks for no GPUs.
std::optional<Gangs::Kept> Gangs::nodes_to_keep(GangRecord& gang) {
  const Lack lack = lack_of(gang);
  if (lack.gpus == 0) return std::nullopt;
  domains_.refresh();
  const auto level = gang.spec.required_level.empty() ? std::optional(placement::Domains::kCluster)
                                                      : domains_.find_level(gang.spec.required_level);
  if (!level) return std::nullopt;
  auto by_domain = keepable(lack, *level);
  if (const std::vector<NodeId> bound = occupied(gang); !bound.empty() && *level != placement::Domains::kCluster) {
    const bool single = *level == domains_.node_level();
    const std::uint64_t only = single ? bound.front().value : domains_.domain_of(bound.front(), *level).value;
    std::erase_if(by_domain, [&](const auto& entry) { return entry.first != only; });
  }
  std::vector<KeepableNode>* best = nullptr;
  std::int64_t most = -1;
  for (auto& [domain, nodes] : by_domain) {
    std::int64_t holds = 0;
    std::int64_t free = 0;
    for (const KeepableNode& node : nodes) {
      holds += node.holds;
      free += node.free;
    }
    if (holds < lack.gpus || free <= most) continue;
    most = free;
    best = &nodes;
  }
  if (best == nullptr) return std::nullopt;
  std::sort(best->begin(), best->end(), [](const KeepableNode& a, const KeepableNode& b) {
    return a.free != b.free ? a.free > b.free : a.id < b.id;
  });
  Kept kept{gang.spec.key, priority(gang), {}, clock_.now() + times_.keep_for};
  std::int64_t held = 0;
  for (const KeepableNode& node : *best) {
    if (held >= lack.gpus) break;
    held += node.holds;
    kept.nodes.insert(node.id);
  }
  return kept;
}

/// So that a large gang gets its turn though smaller pods would take all that becomes free: nothing is known of how
/// long pods run, so nothing is let in there meanwhile.
void Gangs::update_kept() {
  const Nanoseconds now = clock_.now();
  if (kept_ && now >= kept_->until) {
    gangs_.find(kept_->gang)->second.blocked_since = now;  // whoever else waits is next
    kept_.reset();
    freed();
  }
  GangRecord* first = nullptr;
  for (auto& [key, gang] : gangs_) {
    if (!gang.blocked_since || !gang.refusal || !may_be_placed(gang)) continue;
    const Tally& members = tally(gang);
    if (members.waiting == 0 || !complete(gang, members) || whole(gang, members)) continue;
    if (now - *gang.blocked_since < times_.age && !members.holds_on()) continue;
    if (first == nullptr || ranks_before(gang, *first)) first = &gang;
  }
  const bool same = first != nullptr && kept_ && kept_->gang == first->spec.key;
  if (same) return;
  const bool was_kept = kept_.has_value();
  kept_ = first == nullptr ? std::nullopt : nodes_to_keep(*first);
  if (was_kept) freed();
}

void Gangs::tick() {
  expire();
  update_kept();
  take_vacated();
  if (waking_) wake_blocked();
}

}  // namespace mortise::extender
