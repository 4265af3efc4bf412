#include "scheduler/extender/gangs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/kube/objects/gang.h"

namespace mortise::extender {
namespace {

using Stage = Booking::Stage;

/// How often a place is answered before its node is taken for refused.
constexpr int kAsksPerPlace = 2;
constexpr std::string_view kElsewhere = "GangElsewhere: the gang's place for this member is on another node";
constexpr std::string_view kNotWhole = "the places of its gang are not all held any more";

std::int32_t at(const std::map<std::string, std::int32_t>& counts, const std::string& role) {
  const auto found = counts.find(role);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

std::string_view gang_phase_name(GangPhase phase) {
  constexpr std::array<std::string_view, kGangPhaseCount> kNames = {
      "waits_for_object", "invalid", "incomplete", "ready",    "blocked", "never_fits",
      "reserved",         "binding", "running",    "degraded", "finished"};
  return kNames[static_cast<std::size_t>(phase)];
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

Gangs::Tally Gangs::tally(const GangRecord& gang) const {
  Tally tally;
  for (const auto& [role, count] : gang.succeeded) {
    tally.succeeded += count;
    tally.have_by_role[role] += count;
  }
  for (const auto& [uid, member] : gang.members) {
    const Booking* booking = bookings_.find(uid);
    std::int32_t* count = &tally.waiting;
    if (member.succeeded) {
      count = &tally.succeeded;
    } else if (booking != nullptr) {
      count = booking->stage == Stage::kReserved  ? &tally.reserved
              : booking->stage == Stage::kBinding ? &tally.binding
                                                  : &tally.bound;
    }
    ++*count;
    ++(count == &tally.waiting ? tally.waiting_by_role : tally.have_by_role)[member.pod.role];
  }
  return tally;
}

std::int32_t Gangs::missing(const GangRecord& gang, const Tally& tally) {
  return std::max(0, gang.spec.minimum - tally.have());
}

/// Enough members are there, with a place or without.
bool Gangs::complete(const GangRecord& gang, const Tally& tally) {
  if (tally.have() + tally.waiting < gang.spec.minimum) return false;
  return std::all_of(gang.spec.roles.begin(), gang.spec.roles.end(), [&](const GangRoleNeed& role) {
    return at(tally.have_by_role, role.name) + at(tally.waiting_by_role, role.name) >= role.minimum;
  });
}

/// All that must start together have a place.
bool Gangs::whole(const GangRecord& gang, const Tally& tally) {
  if (missing(gang, tally) > 0) return false;
  return std::all_of(gang.spec.roles.begin(), gang.spec.roles.end(),
                     [&](const GangRoleNeed& role) { return at(tally.have_by_role, role.name) >= role.minimum; });
}

std::int32_t Gangs::priority(const GangRecord& gang) const {
  if (gang.spec.priority || gang.members.empty()) return gang.spec.priority.value_or(0);
  std::int32_t lowest = gang.members.begin()->second.pod.request.priority;
  for (const auto& [uid, member] : gang.members) lowest = std::min(lowest, member.pod.request.priority);
  return lowest;
}

std::string Gangs::problem(const GangRecord& gang) const {
  if (!gang.spec.invalid.empty() || gang.spec.priority) return gang.spec.invalid;
  const std::int32_t lowest = priority(gang);
  std::int32_t highest = lowest;
  for (const auto& [uid, member] : gang.members) highest = std::max(highest, member.pod.request.priority);
  return lowest == highest ? std::string() : kube::mixed_priorities(lowest, highest);
}

GangPhase Gangs::phase(const GangRecord& gang) const {
  const Tally now = tally(gang);
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
    erase_member(*find_gang(uid), uid);
  }
  const auto [entry, is_new] = gangs_.try_emplace(spec.key);
  GangRecord& gang = entry->second;
  if (is_new) {
    gang.spec = spec;
    gang.order = ++arrivals_;
  }
  const auto [member, joined] = gang.members.try_emplace(uid);
  if (joined) {
    gang_of_.insert_or_assign(uid, spec.key);
    member->second.order = ++arrivals_;
    gang.left_unused = false;
    if (!tally(gang).holds_on()) gang.refusal.reset();
  }
  member->second.pod = pod;
  member->second.kind = pod.role + '\n' + std::to_string(cluster_.intern(pod.request).value) + '\n' + pod.selector;
  if (!is_new) respecify(spec);
}

void Gangs::respecify(const GangSpec& spec) {
  const auto found = gangs_.find(spec.key);
  if (found == gangs_.end() || found->second.spec == spec) return;
  GangRecord& gang = found->second;
  gang.spec = spec;
  gang.refusal.reset();
  settle(gang);
  // kube-scheduler does not look at group objects: it would not ask again by itself.
  const Tally now = tally(gang);
  if (may_be_placed(gang) && complete(gang, now) && !whole(gang, now)) kick_scouts(gang, batch_of(gang, nullptr, now));
}

bool Gangs::may_be_placed(const GangRecord& gang) const {
  return gang.spec.waits_for.empty() && problem(gang).empty();
}

void Gangs::erase_member(GangRecord& gang, std::string_view uid) {
  gang.members.erase(gang.members.find(uid));
  gang_of_.erase(gang_of_.find(uid));
  settle(gang);
}

/// Gives back what is held for a gang that cannot become whole, and forgets one without members.
void Gangs::settle(GangRecord& gang) {
  if (gang.members.empty()) {
    if (kept_ && kept_->gang == gang.spec.key) kept_.reset();
    gangs_.erase(gangs_.find(gang.spec.key));
    return;
  }
  const Tally now = tally(gang);
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
  for (auto& [key, gang] : gangs_) {
    if (gang.expires != 0 && gang.expires <= now && release(gang) > 0) {
      ++figures_.expired;
      gang.left_unused = true;
    }
    for (auto& [name, kind] : gang.kinds) {
      if (std::erase_if(kind.aside, [&](const auto& aside) { return aside.second <= now; }) > 0) freed();
    }
  }
  if (bookings_.drop_expired(now)) freed();
}

void Gangs::succeeded(std::string_view uid) {
  if (GangRecord* gang = find_gang(uid)) {
    gang->members.find(uid)->second.succeeded = true;
    freed();
  }
}

void Gangs::gone(std::string_view uid) {
  GangRecord* gang = find_gang(uid);
  if (gang == nullptr) return;
  const Member& member = gang->members.find(uid)->second;
  const Booking* booking = bookings_.find(uid);
  if (member.succeeded) {
    ++gang->succeeded[member.pod.role];
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
    }
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
    gang.kinds[member.kind].aside[node] = clock_.now() + times_.aside_for;
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
  // Only once for each, so that places end that nobody is bound to in the end.
  if (!std::exchange(member.bind_tried, true)) {
    gang->expires = clock_.now() + times_.reserve_for;
    for (const auto& [other, record] : gang->members) bookings_.extend(other, gang->expires);
  }
  return {};
}

}  // namespace mortise::extender
