#include "scheduler/extender/gang_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mortise::extender {
namespace {

using nlohmann::ordered_json;

std::string_view state_of(const GangMemberRecord& member, const Booking* booking) {
  if (member.succeeded) return "succeeded";
  if (booking == nullptr) return "waiting";
  if (booking->stage == Booking::Stage::kReserved) return "reserved";
  return booking->stage == Booking::Stage::kBinding ? "binding" : "bound";
}

ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

/// "2 of 4 members are there; it starts when all of these are".
std::string members_missing(const GangRecord& gang, const Gangs::Tally& tally) {
  const auto text = [](std::int32_t there, std::int32_t needed, const std::string& whose) {
    return std::to_string(there) + " of " + std::to_string(needed) + " members" + whose +
           " are there; it starts when all of these are";
  };
  const std::int32_t there = tally.have() + tally.waiting;
  if (there < gang.spec.minimum) return text(there, gang.spec.minimum, "");
  for (const GangRoleNeed& role : gang.spec.roles) {
    const std::int32_t of_role = count_of(tally.have_by_role, role.name) + count_of(tally.waiting_by_role, role.name);
    if (of_role < role.minimum) return text(of_role, role.minimum, " of role '" + role.name + "'");
  }
  return {};
}

/// The nodes that the search left out because kube-scheduler did not take them, and for how long.
std::string nodes_aside(const GangRecord& gang, const Bookings& bookings, Nanoseconds now) {
  std::map<std::string, Nanoseconds> until;
  for (const auto& [kind, record] : gang.kinds) {
    for (const auto& [node, end] : record.aside) {
      if (end > now)
        until[bookings.cluster().node_name(node)] = std::max(until[bookings.cluster().node_name(node)], end);
    }
  }
  std::string text;
  for (const auto& [node, end] : until) {
    const Nanoseconds left = (end - now + kSecond - 1) / kSecond;
    text += (text.empty() ? "; set aside, as kube-scheduler did not take them: " : ", ") + node + " for " +
            std::to_string(left) + " s more";
  }
  return text;
}

/// What keeps the gang from running; empty: nothing does.
std::string reason_of(const Gangs& gangs, const GangRecord& gang, GangPhase phase, const Bookings& bookings,
                      Nanoseconds now) {
  const Gangs::Tally& tally = gangs.tally(gang);
  switch (phase) {
    case GangPhase::kInvalid:
      return gangs.problem(gang);
    case GangPhase::kWaitsForObject:
      return gang.spec.waits_for;
    case GangPhase::kIncomplete:
      return members_missing(gang, tally);
    case GangPhase::kReady:
      return "kube-scheduler has not said yet where each kind of member may go";
    case GangPhase::kBlocked:
    case GangPhase::kNeverFits:
    case GangPhase::kDegraded:
      if (gang.refusal) return gang.refusal->detail + nodes_aside(gang, bookings, now);
      return members_missing(gang, tally);
    default:
      return {};
  }
}

ordered_json members_json(const GangRecord& gang, const Bookings& bookings) {
  std::vector<const std::pair<const std::string, GangMemberRecord>*> members;
  for (const auto& entry : gang.members) members.push_back(&entry);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return a->second.order < b->second.order; });
  ordered_json list = ordered_json::array();
  for (const auto* entry : members) {
    const auto& [uid, member] = *entry;
    const Booking* booking = bookings.find(uid);
    list.push_back({{"pod", member.pod.request.ns + "/" + member.pod.request.name},
                    {"role", or_null(member.pod.role)},
                    {"state", state_of(member, booking)},
                    {"node", or_null(booking == nullptr ? std::string() : booking->node)}});
  }
  return list;
}

/// Null: nobody goes for the gang.
ordered_json preemption_json(const GangRecord& gang, const Bookings& bookings) {
  if (!gang.preemption) return nullptr;
  ordered_json left = ordered_json::array();
  for (const auto& [uid, node] : gang.preemption->victims) {
    const Booking* booking = bookings.find(uid);
    if (booking != nullptr) left.push_back(booking->request.ns + "/" + booking->request.name);
  }
  return {{"victims", gang.preemption->victims.size()}, {"left", left}};
}

/// As the answers to filter begin; empty where there is nothing to wait for.
std::string_view reason_name_of(const GangRecord& gang, GangPhase phase) {
  switch (phase) {
    case GangPhase::kInvalid:
      return "GangInvalid";
    case GangPhase::kWaitsForObject:
      return "GangWaits";
    case GangPhase::kIncomplete:
      return "GangIncomplete";
    case GangPhase::kReady:
      return "GangGathers";
    default:
      if (gang.refusal) return placement::reason_name(gang.refusal->reason);
      return phase == GangPhase::kDegraded ? "GangIncomplete" : "";
  }
}

}  // namespace

ordered_json member_json(const Gangs& gangs, const Bookings& bookings, std::string_view ns, std::string_view name,
                         Nanoseconds now) {
  const GangRecord* gang = nullptr;
  const GangMemberRecord* member = nullptr;
  const Booking* booking = nullptr;
  for (const auto& [key, record] : gangs.gangs()) {
    for (const auto& [uid, other] : record.members) {
      const std::string_view of = other.pod.request.ns;
      if (other.succeeded || other.pod.request.name != name || (of.empty() ? "default" : of) != ns) continue;
      const Booking* held = bookings.find(uid);
      if (held != nullptr && held->stage == Booking::Stage::kBound) continue;
      if (member != nullptr && member->order > other.order) continue;
      gang = &record;
      member = &other;
      booking = held;
    }
  }
  if (gang == nullptr) return nullptr;
  const GangPhase phase = gangs.phase(*gang);
  const bool placed = booking != nullptr;
  const std::string reason = placed ? std::string() : reason_of(gangs, *gang, phase, bookings, now);
  return {{"namespace", ns},
          {"pod", name},
          {"gang", gang->spec.name},
          {"gang_state", gang_phase_name(phase)},
          {"fits", placed},
          {"planned_node", or_null(placed ? booking->node : std::string())},
          {"main_reason", or_null(placed ? std::string() : std::string(reason_name_of(*gang, phase)))},
          {"detail", or_null(reason)}};
}

ordered_json gangs_json(const Gangs& gangs, const Bookings& bookings, Nanoseconds now) {
  ordered_json list = ordered_json::array();
  for (const auto& [key, gang] : gangs.gangs()) {
    const Gangs::Tally& tally = gangs.tally(gang);
    const GangPhase phase = gangs.phase(gang);
    ordered_json blocked = nullptr;
    if (gang.blocked_since) blocked = (now - *gang.blocked_since) / kSecond;
    list.push_back({{"name", gang.spec.name},
                    {"convention", gang.spec.convention},
                    {"state", gang_phase_name(phase)},
                    {"reason", or_null(reason_of(gangs, gang, phase, bookings, now))},
                    {"priority", gangs.priority(gang)},
                    {"minimum", gang.spec.minimum},
                    {"topology_required", or_null(gang.spec.required_level)},
                    {"topology_preferred", or_null(gang.spec.preferred_level)},
                    {"note", or_null(gangs.note(gang))},
                    {"bound", tally.bound},
                    {"binding", tally.binding},
                    {"reserved", tally.reserved},
                    {"waiting", tally.waiting},
                    {"succeeded", tally.succeeded},
                    {"blocked_seconds", blocked},
                    {"nodes_kept", gangs.kept_for() == key},
                    {"preempts", preemption_json(gang, bookings)},
                    {"members", members_json(gang, bookings)}});
  }
  return {{"gangs", list}};
}

std::vector<GangLine> gangs_at_work(const Gangs& gangs, const Bookings& bookings, Nanoseconds now, std::size_t most) {
  std::vector<GangLine> lines;
  for (const auto& [key, gang] : gangs.gangs()) {
    const GangPhase phase = gangs.phase(gang);
    if (phase == GangPhase::kRunning || phase == GangPhase::kFinished) continue;
    if (lines.size() == most) break;
    const Gangs::Tally& tally = gangs.tally(gang);
    lines.push_back({gang.spec.name, std::string(gang_phase_name(phase)),
                     std::to_string(tally.bound + tally.binding) + " bound, " + std::to_string(tally.reserved) +
                         " hold a place, " + std::to_string(tally.waiting) + " wait, " +
                         std::to_string(gang.spec.minimum) + " needed",
                     reason_of(gangs, gang, phase, bookings, now)});
  }
  return lines;
}

}  // namespace mortise::extender
