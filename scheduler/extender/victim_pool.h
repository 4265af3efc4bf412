#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/placement/preemption.h"

namespace mortise::extender {

class Gangs;
struct GangRecord;

/// From pods on the books to possible victims. A member of a running gang brings along all that hold a place of it.
class VictimPoolBuilder {
 public:
  /// `gangs` may be null. With `whole_only_here`, gangs that are on several nodes are left out: nobody evicts the rest.
  VictimPoolBuilder(const Bookings& bookings, const Gangs* gangs, const Clock& clock, bool whole_only_here)
      : bookings_(bookings), gangs_(gangs), clock_(clock), whole_only_here_(whole_only_here) {}

  /// The pod's priority, in a gang that of the gang as a victim.
  std::int32_t priority_of(std::string_view uid, const Booking& booking) const;
  /// A pod that holds a place; nothing when it is in already, or left out. The budgets are indexes of pool().budgets.
  void add(const std::string& uid, const Booking& booking, bool proposed, std::vector<std::uint32_t> budgets = {});

  /// A place that is only reserved for a member of this gang: all of the gang's are given back, or none.
  void add_held(const std::string& uid, const Booking& booking, const std::string& gang);

  placement::VictimPool& pool() { return pool_; }
  /// Of pool().pods.
  const std::string& uid(std::size_t pod) const { return uids_[pod]; }

 private:
  const GangRecord* running_gang(std::string_view uid, const Booking& booking) const;
  bool is_on_several_nodes(const GangRecord& gang) const;
  std::uint32_t add_gang(const GangRecord& gang);
  void put(const std::string& uid, const Booking& booking, bool proposed, std::vector<std::uint32_t> budgets);

  const Bookings& bookings_;
  const Gangs* gangs_;
  const Clock& clock_;
  bool whole_only_here_;
  placement::VictimPool pool_;
  std::vector<std::string> uids_;
  std::map<std::string, std::size_t, std::less<>> at_;           // UID -> pod
  std::map<std::string, std::uint32_t, std::less<>> held_at_{};  // gang that only holds -> its index
  std::map<const GangRecord*, std::uint32_t> gang_at_;           // only looked up
  std::map<std::string, std::uint32_t, std::less<>> role_at_{};  // gang's index and role -> role
};

/// The pod holds a place that it, and not only a promise, has: it can be evicted.
bool is_placed(const Booking& booking);

}  // namespace mortise::extender
