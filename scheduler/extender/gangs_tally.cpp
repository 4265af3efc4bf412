#include "scheduler/extender/gangs.h"

namespace mortise::extender {

void GangTally::add(MemberState state, const std::string& role, std::int32_t by) {
  switch (state) {
    case MemberState::kWaiting:
      waiting += by;
      break;
    case MemberState::kReserved:
      reserved += by;
      break;
    case MemberState::kBinding:
      binding += by;
      break;
    case MemberState::kBound:
      bound += by;
      break;
    case MemberState::kSucceeded:
      succeeded += by;
      break;
  }
  auto& by_role = state == MemberState::kWaiting ? waiting_by_role : have_by_role;
  const auto of_role = by_role.try_emplace(role).first;
  of_role->second += by;
  if (of_role->second == 0) by_role.erase(of_role);
}

MemberState Gangs::state_of(const Entry& entry) const {
  if (entry.second.succeeded) return MemberState::kSucceeded;
  const Booking* booking = bookings_.find(entry.first);
  if (booking == nullptr) return MemberState::kWaiting;
  if (booking->stage == Booking::Stage::kReserved) return MemberState::kReserved;
  return booking->stage == Booking::Stage::kBinding ? MemberState::kBinding : MemberState::kBound;
}

/// `by` is 1 when the member comes and -1 when it goes.
void Gangs::count(GangRecord& gang, const Member& member, std::int32_t by) {
  gang.tally.add(member.counted, member.pod.role, by);
  const auto priority = gang.priorities.try_emplace(member.pod.request.priority).first;
  priority->second += by;
  if (priority->second == 0) gang.priorities.erase(priority);
}

void Gangs::recount(GangRecord& gang, Entry& member) {
  count(gang, member.second, -1);
  member.second.counted = state_of(member);
  count(gang, member.second, 1);
}

void Gangs::booking_changed(std::string_view uid) {
  GangRecord* gang = find_gang(uid);
  if (gang != nullptr) recount(*gang, *gang->members.find(uid));
}

}  // namespace mortise::extender
