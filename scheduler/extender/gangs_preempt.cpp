#include <algorithm>
#include <utility>

#include "scheduler/extender/evictions.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/extender/victim_pool.h"
#include "scheduler/placement/gang_eviction.h"

namespace mortise::extender {

using placement::GangEviction;
using placement::GangPlan;

void Gangs::note_rooms(GangRecord& gang, const Member& member, std::span<const RoomToMake> rooms) {
  GangKindRecord& kind = gang.kinds[member.kind];
  const Nanoseconds now = clock_.now();
  std::erase_if(kind.makeable, [&](const auto& entry) { return now - entry.second.second >= times_.fresh_for; });
  for (const RoomToMake& room : rooms) {
    const auto [entry, is_new] = kind.makeable.insert_or_assign(room.node, std::pair(room, now));
    if (is_new) ++epoch_;
  }
}

/// It is known of each kind where its members may go: where there is room, or where room could be made.
bool Gangs::rooms_gathered(const GangRecord& gang, const Batch& batch) const {
  return std::all_of(batch.begin(), batch.end(), [&](const auto& part) {
    const auto kind = gang.kinds.find(part.first);
    if (kind == gang.kinds.end()) return false;
    const auto fresh = [&](Nanoseconds asked) { return clock_.now() - asked < times_.fresh_for; };
    const auto& makeable = kind->second.makeable;
    return (!kind->second.nodes.empty() && fresh(kind->second.asked)) ||
           std::any_of(makeable.begin(), makeable.end(), [&](const auto& entry) { return fresh(entry.second.second); });
  });
}

std::optional<GangVictims> Gangs::preempt(std::string_view uid, std::span<const RoomToMake> rooms) {
  expire();
  GangRecord& gang = *find_gang(uid);
  Entry& member = *gang.members.find(uid);
  note_rooms(gang, member.second, rooms);
  member.second.asked = true;
  const Tally now = tally(gang);
  if (!may_be_placed(gang) || bookings_.find(uid) != nullptr || !complete(gang, now)) return std::nullopt;
  if (gang.preemption && !still_helps(gang)) end_preemption(gang);
  if (!gang.preemption) {
    const Batch batch = batch_of(gang, &member, now);
    if (!rooms_gathered(gang, batch)) {
      kick_scouts(gang, batch, &member);
      return std::nullopt;
    }
    if (!decide_victims(gang, batch, now)) return std::nullopt;
    kick_for_victims(gang, uid);
  }
  std::optional<GangVictims> victims = victims_for(gang, uid);
  if (victims) expect_evictions(gang);
  return victims;
}

/// How many evictions on each node violate no budget, where kube-scheduler said that some would.
std::map<NodeId, std::int64_t> Gangs::evictions_allowed(const GangRecord& gang, const Batch& batch) const {
  std::map<NodeId, std::int64_t> allowed;
  for (const auto& [kind, members] : batch) {
    const auto known = gang.kinds.find(kind);
    if (known == gang.kinds.end()) continue;
    for (const auto& [node, room] : known->second.makeable) {
      if (!room.first.allowed) continue;
      const auto [entry, is_new] = allowed.try_emplace(node, *room.first.allowed);
      entry->second = std::min(entry->second, *room.first.allowed);
    }
  }
  return allowed;
}

/// All of lower priority where members may go, and places that are only reserved for gangs of lower priority: those are
/// given back, which costs nobody anything.
VictimPoolBuilder Gangs::victim_pool(const GangRecord& gang, const Batch& batch,
                                     const std::map<NodeId, std::int64_t>& allowed) const {
  VictimPoolBuilder victims(bookings_, this, clock_, evictions_ == nullptr);
  std::set<NodeId> nodes;
  for (const auto& [kind, members] : batch) {
    for (const NodeId node : nodes_for(gang, kind, Where::kMakeable)) nodes.insert(node);
  }
  const std::int32_t own = priority_as_preemptor(gang);
  for (const NodeId node : nodes) {
    std::vector<std::uint32_t> budgets;
    if (const auto found = allowed.find(node); found != allowed.end()) {
      budgets.push_back(static_cast<std::uint32_t>(victims.pool().budgets.size()));
      victims.pool().budgets.push_back(found->second);
    }
    bookings_.for_each_on(cluster_.node_name(node), [&](const std::string& uid, const Booking& booking) {
      if (!booking.allocation || booking.leaving || victims.priority_of(uid, booking) >= own) return;
      if (uid == booking.request.ns + "/" + booking.request.name) return;  // without UID
      if (is_placed(booking)) victims.add(uid, booking, false, budgets);
    });
  }
  for (const auto& [key, other] : gangs_) {
    if (priority_as_victim(other) >= own || phase(other) != GangPhase::kReserved) continue;
    for (const auto& [uid, member] : other.members) {
      if (is_reserved(uid)) victims.add_held(uid, *bookings_.find(uid), key);
    }
  }
  return victims;
}

/// False: nobody is to go. What is being deleted counts as gone, so no more go where waiting is enough.
bool Gangs::decide_victims(GangRecord& gang, const Batch& batch, const Tally& tally) {
  const auto never = [](const Entry* entry) { return !entry->second.pod.preempts; };
  for (const auto& [kind, members] : batch) {
    if (std::any_of(members.begin(), members.end(), never)) return false;
  }
  const auto refuse_as_of_now = [&] {
    gang.no_preemption = std::pair(cluster_.version(), epoch_);
    return false;
  };
  if (batch.empty() || gang.no_preemption == std::pair(cluster_.version(), epoch_)) return false;
  const Asked asked = request_of(gang, batch, tally, Where::kMakeable);
  const placement::GangDecision now = planner_.plan(asked.request);
  const auto* rejected = std::get_if<placement::GangRejected>(&now);
  if (rejected == nullptr) return false;  // it fits, and the next filter says so
  refuse(gang, *rejected);
  if (rejected->reason != placement::GangReason::kNoRoom) return refuse_as_of_now();
  GangPreemption preemption;
  preemption.allowed = evictions_allowed(gang, batch);
  VictimPoolBuilder victims = victim_pool(gang, batch, preemption.allowed);
  placement::GangEvictionQuestion question{std::move(victims.pool()), &asked.request, priority_as_preemptor(gang)};
  placement::GangEvictionBudget budget;
  const std::optional<GangEviction> found = bookings_.try_out([&](placement::ClusterState& cluster) {
    for (const std::string& uid : bookings_.leaving()) {
      if (const auto& held = bookings_.find(uid)->allocation) (void)cluster.release(*held);
    }
    return placement::cheapest_gang_eviction(cluster, planner_, question, budget);
  });
  if (!found || !roles_met(gang, tally, batch, found->plan)) return refuse_as_of_now();
  for (const std::size_t victim : found->victims) {
    const std::string& uid = victims.uid(victim);
    const Booking* booking = bookings_.find(uid);
    if (booking == nullptr) continue;  // given back with the rest of its gang
    if (is_placed(*booking)) {
      preemption.victims.emplace(uid, *cluster_.find_node(booking->node));
    } else if (release(*find_gang(uid)) > 0) {
      ++figures_.yielded;
    }
  }
  adopt(gang, batch, std::move(preemption), found->plan);
  return true;
}

/// From now on the nodes are held for the gang; gangs of lower priority that some were held for have to look again.
void Gangs::adopt(GangRecord& gang, const Batch& batch, GangPreemption preemption, const GangPlan& plan) {
  preemption.priority = priority_as_preemptor(gang);
  preemption.began = clock_.now();
  preemption.until = preemption.began + times_.preempt_for;
  for (const placement::GangMember& member : plan.members) {
    const Entry& entry = *std::next(batch.begin(), member.role)->second[member.index];
    preemption.places.emplace(entry.first, member.node);
    if (const auto held = held_.find(member.node); held != held_.end()) {
      if (held->second != gang.spec.key) end_preemption(gangs_.find(held->second)->second);
    }
    held_.insert_or_assign(member.node, gang.spec.key);
  }
  gang.preemption = std::move(preemption);
  look_again_at(gang.preemption->until);
  gang.no_preemption.reset();
  ++figures_.preemptions;
}

/// One for each node that has victims, but that of the member that is being answered: kube-scheduler evicts on the node
/// of the member that it asks about.
void Gangs::kick_for_victims(const GangRecord& gang, std::string_view asker) {
  std::set<NodeId> nodes;
  for (const auto& [uid, node] : gang.preemption->victims) nodes.insert(node);
  if (const auto place = gang.preemption->places.find(asker); place != gang.preemption->places.end()) {
    nodes.erase(place->second);
  }
  for (const auto& [uid, node] : gang.preemption->places) {
    const Entry& member = *gang.members.find(uid);
    if (member.second.asked && nodes.erase(node) > 0) kick(member, "preempts-" + std::to_string(figures_.preemptions));
  }
}

/// Of gangs that go as a whole: once kube-scheduler has begun, all must go, above all those that are on nodes where
/// nothing is needed.
void Gangs::expect_evictions(const GangRecord& gang) {
  if (evictions_ == nullptr) return;
  std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> by_gang;  // first, rest
  for (const auto& [uid, node] : gang.preemption->victims) {
    const auto of = gang_of_.find(uid);
    if (of == gang_of_.end()) continue;
    const auto held = held_.find(node);
    const bool here = held != held_.end() && held->second == gang.spec.key;
    auto& [first, rest] = by_gang[of->second];
    (here ? first : rest).push_back(uid);
  }
  for (const auto& [key, uids] : by_gang) {
    const auto& members = gangs_.find(key)->second.members;
    const bool whole = std::all_of(members.begin(), members.end(), [&](const auto& member) {
      const Booking* booking = bookings_.find(member.first);
      const bool stays = booking != nullptr && is_placed(*booking) && !booking->leaving;
      return !stays || gang.preemption->victims.contains(member.first);
    });
    if (!whole) continue;
    evictions_->expect(gang.spec.key + '\n' + key, gang.spec.name, uids.first, uids.second);
  }
}

/// Those that are still there and are not being deleted.
std::vector<std::string> Gangs::victims_left(const GangPreemption& preemption) const {
  std::vector<std::string> left;
  for (const auto& [uid, node] : preemption.victims) {
    const Booking* booking = bookings_.find(uid);
    if (booking != nullptr && is_placed(*booking) && !booking->leaving) left.push_back(uid);
  }
  return left;
}

/// Once the victims are gone all members that wait have room where it was decided, and no gang is cut below its
/// minimum.
bool Gangs::still_helps(GangRecord& gang) {
  const Tally now = tally(gang);
  Batch batch;
  for (const auto& [uid, node] : gang.preemption->places) {
    const auto member = gang.members.find(uid);
    if (member == gang.members.end() || bookings_.find(uid) != nullptr) return false;
    batch[member->second.kind].push_back(&*member);
  }
  const std::vector<std::string> left = victims_left(*gang.preemption);
  VictimPoolBuilder victims(bookings_, this, clock_, false);
  for (const std::string& uid : left) victims.add(uid, *bookings_.find(uid), false);
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < victims.pool().pods.size(); ++i) {
    if (std::binary_search(left.begin(), left.end(), victims.uid(i))) all.push_back(i);
  }
  if (placement::with_their_gangs(victims.pool(), all) != all) return false;
  const Asked asked = request_of(gang, batch, now, Where::kPlanned);
  return bookings_.try_out([&](placement::ClusterState& cluster) {
    for (const std::string& uid : bookings_.leaving()) {
      if (const auto& held = bookings_.find(uid)->allocation) (void)cluster.release(*held);
    }
    for (const std::string& uid : left) (void)cluster.release(*bookings_.find(uid)->allocation);
    return planner_.try_plan(asked.request).has_value();
  });
}

/// Nothing: the member has no place there, or nobody has to go for it any more.
std::optional<GangVictims> Gangs::victims_for(const GangRecord& gang, std::string_view uid) const {
  const GangPreemption& preemption = *gang.preemption;
  const auto place = preemption.places.find(uid);
  if (place == preemption.places.end()) return std::nullopt;
  GangVictims victims{place->second, {}};
  for (const std::string& left : victims_left(preemption)) {
    if (preemption.victims.find(left)->second == place->second) victims.uids.push_back(left);
  }
  if (victims.uids.empty()) return std::nullopt;
  std::stable_sort(victims.uids.begin(), victims.uids.end(), [&](const std::string& a, const std::string& b) {
    return bookings_.find(a)->request.priority > bookings_.find(b)->request.priority;
  });
  if (const auto allowed = preemption.allowed.find(place->second); allowed != preemption.allowed.end()) {
    const auto count = static_cast<std::int64_t>(victims.uids.size());
    victims.pdb_violations = std::max<std::int64_t>(0, count - allowed->second);
  }
  return victims;
}

void Gangs::end_preemption(GangRecord& gang) {
  std::erase_if(held_, [&](const auto& entry) { return entry.second == gang.spec.key; });
  gang.preemption.reset();
  freed();
}

/// Nodes are held on while victims are being deleted, however long they may take for it, but not for ever.
void Gangs::expire_preemption(GangRecord& gang) {
  const Nanoseconds now = clock_.now();
  if (!gang.preemption || gang.preemption->until > now) return;
  const GangPreemption& preemption = *gang.preemption;
  const bool leaving = std::any_of(preemption.victims.begin(), preemption.victims.end(), [&](const auto& victim) {
    const Booking* booking = bookings_.find(victim.first);
    return booking != nullptr && booking->leaving;
  });
  if (leaving && now - preemption.began < times_.keep_for) {
    gang.preemption->until = now + times_.preempt_for;
  } else {
    end_preemption(gang);
  }
}

}  // namespace mortise::extender
