#include "scheduler/extender/gangs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "scheduler/kube/objects/gang.h"

namespace mortise::extender {
namespace {

using Stage = Booking::Stage;

/// How often a place is answered before its node is taken for refused.
constexpr int kAsksPerPlace = 2;
constexpr std::string_view kElsewhere = "GangElsewhere: the gang's place for this member is on another node";
constexpr std::string_view kNotWhole = "the places of its gang are not all held any more";

}  // namespace

std::int32_t count_of(const std::map<std::string, std::int32_t>& counts, const std::string& role) {
  const auto found = counts.find(role);
  return found == counts.end() ? 0 : found->second;
}

std::string_view gang_phase_name(GangPhase phase) {
  constexpr std::array<std::string_view, kGangPhaseCount> kNames = {
      "waits_for_object", "invalid", "incomplete", "ready",    "blocked", "never_fits",
      "reserved",         "binding", "running",    "degraded", "finished"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view slot_fault_name(SlotFault fault) {
  constexpr std::array<std::string_view, kSlotFaultCount> kNames = {"malformed", "inconsistent", "lost"};
  return kNames[static_cast<std::size_t>(fault)];
}

GangRecord* Gangs::find_gang(std::string_view uid) {
  const auto key = gang_of_.find(uid);
  return key == gang_of_.end() ? nullptr : &gangs_.find(key->second)->second;
}

bool Gangs::is_reserved(std::string_view uid) const {
  const Booking* booking = bookings_.find(uid);
  return booking != nullptr && booking->stage == Stage::kReserved && booking->allocation;
}

std::optional<NodeId> Gangs::place_of(std::string_view uid) const {
  if (!is_reserved(uid)) return std::nullopt;
  return cluster_.find_node(bookings_.find(uid)->node);
}

std::int32_t Gangs::missing(const GangRecord& gang, const Tally& tally) {
  return std::max(0, gang.spec.minimum - tally.have());
}

/// Enough members are there, with a place or without.
bool Gangs::complete(const GangRecord& gang, const Tally& tally) {
  if (tally.have() + tally.waiting < gang.spec.minimum) return false;
  return std::all_of(gang.spec.roles.begin(), gang.spec.roles.end(), [&](const GangRoleNeed& role) {
    return count_of(tally.have_by_role, role.name) + count_of(tally.waiting_by_role, role.name) >= role.minimum;
  });
}

/// All that must start together have a place.
bool Gangs::whole(const GangRecord& gang, const Tally& tally) {
  if (missing(gang, tally) > 0) return false;
  return std::all_of(gang.spec.roles.begin(), gang.spec.roles.end(),
                     [&](const GangRoleNeed& role) { return count_of(tally.have_by_role, role.name) >= role.minimum; });
}

std::int32_t Gangs::priority(const GangRecord& gang) const {
  if (gang.spec.priority || gang.priorities.empty()) return gang.spec.priority.value_or(0);
  return gang.priorities.begin()->first;
}

std::int32_t Gangs::priority_as_preemptor(const GangRecord& gang) const {
  const std::int32_t of_gang = priority(gang);
  return gang.priorities.empty() ? of_gang : std::min(of_gang, gang.priorities.begin()->first);
}

std::int32_t Gangs::priority_as_victim(const GangRecord& gang) const {
  const std::int32_t of_gang = gang.spec.priority.value_or(std::numeric_limits<std::int32_t>::min());
  return gang.priorities.empty() ? of_gang : std::max(of_gang, gang.priorities.rbegin()->first);
}

const GangRecord* Gangs::gang_of(std::string_view uid) const {
  const auto key = gang_of_.find(uid);
  return key == gang_of_.end() ? nullptr : &gangs_.find(key->second)->second;
}

std::string Gangs::problem(const GangRecord& gang) const {
  if (!gang.spec.invalid.empty() || gang.spec.priority || gang.priorities.size() < 2) return gang.spec.invalid;
  return kube::mixed_priorities(gang.priorities.begin()->first, gang.priorities.rbegin()->first);
}

GangPhase Gangs::phase(const GangRecord& gang) const {
  const Tally& now = tally(gang);
  if (!problem(gang).empty()) return GangPhase::kInvalid;
  if (!gang.spec.waits_for.empty()) return now.bound > 0 ? GangPhase::kRunning : GangPhase::kWaitsForObject;
  if (whole(gang, now)) {
    if (now.have() + now.waiting == now.succeeded) return GangPhase::kFinished;
    if (now.reserved + now.binding == 0) return GangPhase::kRunning;
    return now.bound + now.binding > 0 ? GangPhase::kBinding : GangPhase::kReserved;
  }
  if (now.holds_on()) return GangPhase::kDegraded;
  if (!complete(gang, now)) return GangPhase::kIncomplete;
  if (!gang.refusal) return GangPhase::kReady;
  return gang.refusal->reason == placement::GangReason::kNoRoom ? GangPhase::kBlocked : GangPhase::kNeverFits;
}

void Gangs::see(const GangSpec& spec, const GangPod& pod) {
  const std::string& uid = pod.request.uid;
  const auto before = gang_of_.find(uid);
  if (before != gang_of_.end() && before->second != spec.key) {
    give_up_place(uid);
    erase_member(*find_gang(uid), uid);
  }
  const auto [entry, is_new] = gangs_.try_emplace(spec.key);
  GangRecord& gang = entry->second;
  if (is_new) {
    gang.spec = spec;
    gang.order = ++arrivals_;
  }
  const auto [found, joined] = gang.members.try_emplace(uid);
  Member& member = found->second;
  if (!joined) count(gang, member, -1);
  member.pod = pod;
  member.counted = state_of(*found);
  count(gang, member, 1);
  std::string kind = pod.role + '\n' + std::to_string(cluster_.intern(pod.request).value) + '\n' + pod.selector;
  if (joined) {
    gang_of_.insert_or_assign(uid, spec.key);
    member.order = ++arrivals_;
    gang.left_unused = false;
    if (!tally(gang).holds_on()) gang.refusal.reset();
  }
  // Its place was planned for something else.
  if (std::exchange(member.kind, std::move(kind)) != member.kind || joined) give_up_place(uid);
  if (!is_new) respecify(spec);
}

void Gangs::respecify(const GangSpec& spec) {
  const auto found = gangs_.find(spec.key);
  if (found == gangs_.end() || found->second.spec == spec) return;
  GangRecord& gang = found->second;
  const GangSpec before = std::exchange(gang.spec, spec);
  gang.refusal.reset();
  gang.no_preemption.reset();
  settle(gang);
  const bool asks_else =
      before.required_level != spec.required_level || before.minimum != spec.minimum || before.roles != spec.roles;
  if (asks_else) give_back_unfit(gang);
  // kube-scheduler does not look at group objects: it would not ask again by itself.
  const Tally& now = tally(gang);
  if (may_be_placed(gang) && complete(gang, now) && !whole(gang, now)) kick_scouts(gang, batch_of(gang, nullptr, now));
}

/// What was reserved for what the gang asked for before: all of it is planned anew if it does not do now.
void Gangs::give_back_unfit(GangRecord& gang) {
  if (tally(gang).reserved == 0) return;
  domains_.refresh();
  if (!whole(gang, tally(gang)) || !common_domain(gang)) release(gang);
}

/// Of a member that is not bound.
void Gangs::give_up_place(std::string_view uid) {
  if (!is_reserved(uid)) return;
  bookings_.drop_reservation(uid);
  find_gang(uid)->members.find(uid)->second.asks = 0;
  freed();
}

bool Gangs::may_be_placed(const GangRecord& gang) const {
  return gang.spec.waits_for.empty() && problem(gang).empty();
}

void Gangs::erase_member(GangRecord& gang, std::string_view uid) {
  const auto member = gang.members.find(uid);
  count(gang, member->second, -1);
  gang.members.erase(member);
  gang_of_.erase(gang_of_.find(uid));
  settle(gang);
}

/// Gives back what is held for a gang that cannot become whole, and forgets one without members.
void Gangs::settle(GangRecord& gang) {
  const Tally now = tally(gang);
  if (gang.preemption && (!may_be_placed(gang) || !complete(gang, now))) end_preemption(gang);
  if (gang.members.empty()) {
    if (gang.preemption) end_preemption(gang);
    if (kept_ && kept_->gang == gang.spec.key) kept_.reset();
    discard_maps(gang);
    gangs_.erase(gangs_.find(gang.spec.key));
    return;
  }
  if (now.reserved == 0) return;
  if (!may_be_placed(gang) || !complete(gang, now)) release(gang);
}

std::int64_t Gangs::release(GangRecord& gang) {
  std::int64_t released = 0;
  for (auto& [uid, member] : gang.members) {
    if (!is_reserved(uid)) continue;
    bookings_.drop_reservation(uid);
    member.asks = 0;
    member.bind_tried = false;
    ++released;
  }
  gang.expires = 0;
  if (released > 0) freed();
  return released;
}

void Gangs::expire() {
  const Nanoseconds now = clock_.now();
  if (next_end_ <= now) end_what_is_over(now);
  if (bookings_.drop_expired(now)) freed();
}

void Gangs::end_what_is_over(Nanoseconds now) {
  next_end_ = std::numeric_limits<Nanoseconds>::max();
  for (auto& [key, gang] : gangs_) {
    expire_preemption(gang);
    if (gang.preemption) look_again_at(gang.preemption->until);
    if (gang.expires != 0 && gang.expires <= now && release(gang) > 0) {
      ++figures_.expired;
      gang.left_unused = true;
    }
    if (gang.expires != 0 && gang.booked_until <= now) {
      for (const auto& [uid, member] : gang.members) bookings_.extend(uid, gang.expires);
      gang.booked_until = gang.expires;
    }
    if (gang.expires != 0) look_again_at(gang.booked_until);
    for (auto& [name, kind] : gang.kinds) {
      if (std::erase_if(kind.aside, [&](const auto& aside) { return aside.second <= now; }) > 0) freed();
      for (const auto& [node, until] : kind.aside) look_again_at(until);
    }
  }
}

void Gangs::succeeded(std::string_view uid) {
  GangRecord* gang = find_gang(uid);
  if (gang == nullptr) return;
  Entry& member = *gang->members.find(uid);
  member.second.succeeded = true;
  recount(*gang, member);
  freed();
}

void Gangs::gone(std::string_view uid) {
  GangRecord* gang = find_gang(uid);
  if (gang == nullptr) return;
  const Member& member = gang->members.find(uid)->second;
  const Booking* booking = bookings_.find(uid);
  if (member.succeeded) {
    ++gang->succeeded[member.pod.role];
    gang->tally.add(MemberState::kSucceeded, member.pod.role, 1);
  } else if (booking != nullptr && booking->stage != Stage::kReserved) {
    gang->vacated[member.kind].push_back(booking->node);
  }
  if (is_reserved(uid)) bookings_.drop_reservation(uid);
  erase_member(*gang, uid);
  freed();
}

void Gangs::node_left(NodeId node) {
  for (auto& [key, gang] : gangs_) {
    for (auto& [name, kind] : gang.kinds) {
      std::erase(kind.nodes, node);
      kind.aside.erase(node);
      kind.makeable.erase(node);
    }
    const auto held = held_.find(node);
    if (held != held_.end() && held->second == key) end_preemption(gang);
  }
  if (kept_) kept_->nodes.erase(node);
  ++epoch_;
}

/// A question about one node only, be it a nominated one, does not say that there are no others.
void Gangs::note_nodes(GangRecord& gang, const Member& member, std::span<const NodeId> nodes) {
  GangKindRecord& kind = gang.kinds[member.kind];
  const Nanoseconds now = clock_.now();
  const bool fresh = !kind.nodes.empty() && now - kind.asked < times_.fresh_for;
  if (nodes.size() <= 1 && fresh && kind.nodes.size() > 1) return;
  kind.asked = now;
  if (std::equal(nodes.begin(), nodes.end(), kind.nodes.begin(), kind.nodes.end())) return;
  kind.nodes.assign(nodes.begin(), nodes.end());
  ++epoch_;
}

GangAnswer Gangs::wait(Entry& member, std::string reason, GangAnswer::Kind kind) {
  member.second.asked = true;
  return {kind, {}, std::move(reason)};
}

GangAnswer Gangs::ask(std::string_view uid, std::span<const NodeId> nodes) {
  expire();
  GangRecord& gang = *find_gang(uid);
  Entry& member = *gang.members.find(uid);
  note_nodes(gang, member.second, nodes);
  if (const std::string why = problem(gang); !why.empty()) {
    return wait(member, "GangInvalid: " + why, GangAnswer::Kind::kNever);
  }
  if (!gang.spec.waits_for.empty()) return wait(member, "GangWaits: " + gang.spec.waits_for);
  bool refused = false;
  if (is_reserved(uid) && whole(gang, tally(gang))) {
    if (std::optional<GangAnswer> answer = answer_place(gang, member, nodes)) return *std::move(answer);
    refused = std::exchange(member.second.asks, 0) > 0;
  }
  if (std::optional<GangAnswer> why = place(gang, member)) {
    why->refused = refused;
    return *std::move(why);
  }
  const std::optional<NodeId> node = place_of(uid);
  if (!node) return wait(member, std::string(reason_text(placement::GangReason::kNoRoom)));
  if (std::find(nodes.begin(), nodes.end(), *node) == nodes.end()) return wait(member, std::string(kElsewhere));
  member.second.asked = false;
  if (nodes.size() > 1) ++member.second.asks;
  return {GangAnswer::Kind::kPlace, *node, {}, refused};
}

/// Nothing: the place is given up, because kube-scheduler does not let the member go there.
std::optional<GangAnswer> Gangs::answer_place(GangRecord& gang, Entry& entry, std::span<const NodeId> nodes) {
  auto& [uid, member] = entry;
  const NodeId node = *place_of(uid);
  const bool offered = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  if (offered && member.asks < kAsksPerPlace) {
    member.asked = false;
    if (nodes.size() > 1) ++member.asks;
    return GangAnswer{GangAnswer::Kind::kPlace, node, {}};
  }
  if (!offered && nodes.size() <= 1) return wait(entry, std::string(kElsewhere));
  if (offered) {
    const Nanoseconds until = clock_.now() + times_.aside_for;
    gang.kinds[member.kind].aside[node] = until;
    look_again_at(until);
  } else {
    member.asks = 0;
  }
  bookings_.drop_reservation(uid);
  freed();
  return std::nullopt;
}

std::string Gangs::start_bind(std::string_view uid, std::string_view node) {
  GangRecord* gang = find_gang(uid);
  if (gang == nullptr) return {};
  expire();
  const Booking* booking = bookings_.find(uid);
  if (!is_reserved(uid) || booking->node != node) return "its gang holds no place for it on node " + std::string(node);
  if (!whole(*gang, tally(*gang))) return std::string(kNotWhole);
  Member& member = gang->members.find(uid)->second;
  // Only once for each, so that places end that nobody is bound to in the end. Bookings hear of it when they would end.
  if (!std::exchange(member.bind_tried, true)) gang->expires = clock_.now() + times_.reserve_for;
  return {};
}

}  // namespace mortise::extender
