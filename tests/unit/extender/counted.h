#pragma once

#include "scheduler/extender/bookings.h"
#include "scheduler/extender/gang_record.h"

namespace mortise::extender {

/// The gang's members by what they hold, counted one by one.
inline GangTally counted(const GangRecord& gang, const Bookings& bookings) {
  GangTally all;
  for (const auto& [role, count] : gang.succeeded) {
    all.succeeded += count;
    if (count > 0) all.have_by_role[role] += count;
  }
  for (const auto& [uid, member] : gang.members) {
    const Booking* booking = bookings.find(uid);
    if (member.succeeded) {
      ++all.succeeded;
    } else if (booking == nullptr) {
      ++all.waiting;
    } else {
      ++(booking->stage == Booking::Stage::kReserved  ? all.reserved
         : booking->stage == Booking::Stage::kBinding ? all.binding
                                                      : all.bound);
    }
    ++(member.succeeded || booking != nullptr ? all.have_by_role : all.waiting_by_role)[member.pod.role];
  }
  return all;
}

}  // namespace mortise::extender
