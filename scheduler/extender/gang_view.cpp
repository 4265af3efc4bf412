#include "scheduler/extender/gang_view.h"

#include <algorithm>
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

/// What keeps the gang from running; empty: nothing does.
std::string reason_of(const Gangs& gangs, const GangRecord& gang, GangPhase phase) {
  switch (phase) {
    case GangPhase::kInvalid:
      return gangs.problem(gang);
    case GangPhase::kWaitsForObject:
      return gang.spec.waits_for;
    case GangPhase::kIncomplete:
      return "fewer members are there than must start together";
    case GangPhase::kBlocked:
    case GangPhase::kNeverFits:
    case GangPhase::kDegraded:
      return gang.refusal ? gang.refusal->detail : std::string();
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

}  // namespace

ordered_json gangs_json(const Gangs& gangs, const Bookings& bookings, Nanoseconds now) {
  ordered_json list = ordered_json::array();
  for (const auto& [key, gang] : gangs.gangs()) {
    const Gangs::Tally tally = gangs.tally(gang);
    const GangPhase phase = gangs.phase(gang);
    ordered_json blocked = nullptr;
    if (gang.blocked_since) blocked = (now - *gang.blocked_since) / kSecond;
    list.push_back({{"name", gang.spec.name},
                    {"convention", gang.spec.convention},
                    {"state", gang_phase_name(phase)},
                    {"reason", or_null(reason_of(gangs, gang, phase))},
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
                    {"members", members_json(gang, bookings)}});
  }
  return {{"gangs", list}};
}

}  // namespace mortise::extender
