#include "scheduler/extender/victim_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/extender/gangs.h"

namespace mortise::extender {

using Stage = Booking::Stage;

bool is_placed(const Booking& booking) {
  return booking.allocation.has_value() && booking.stage != Stage::kReserved;
}

/// One that is being deleted goes whatever becomes of its gang.
const GangRecord* VictimPoolBuilder::running_gang(std::string_view uid, const Booking& booking) const {
  return gangs_ == nullptr || !is_placed(booking) || booking.leaving ? nullptr : gangs_->gang_of(uid);
}

std::int32_t VictimPoolBuilder::priority_of(std::string_view uid, const Booking& booking) const {
  const GangRecord* gang = running_gang(uid, booking);
  return gang == nullptr ? booking.request.priority : gangs_->priority_as_victim(*gang);
}

bool VictimPoolBuilder::is_on_several_nodes(const GangRecord& gang) const {
  const std::string* node = nullptr;
  for (const auto& [uid, member] : gang.members) {
    const Booking* booking = bookings_.find(uid);
    if (booking == nullptr || !is_placed(*booking)) continue;
    if (node != nullptr && *node != booking->node) return true;
    node = &booking->node;
  }
  return false;
}

/// How many members it can spare: of those that are there to stay, or have done their work.
std::uint32_t VictimPoolBuilder::add_gang(const GangRecord& gang) {
  const auto [found, is_new] = gang_at_.try_emplace(&gang, static_cast<std::uint32_t>(pool_.gangs.size()));
  if (!is_new) return found->second;
  std::map<std::string, std::int32_t, std::less<>> have = gang.succeeded;
  for (const auto& [uid, member] : gang.members) {
    const Booking* booking = bookings_.find(uid);
    if (member.succeeded || (booking != nullptr && is_placed(*booking) && !booking->leaving)) ++have[member.pod.role];
  }
  placement::EvictableGang evictable;
  evictable.spare = -gang.spec.minimum;
  for (const auto& [role, count] : have) evictable.spare += count;
  for (const GangRoleNeed& role : gang.spec.roles) {
    role_at_.emplace(std::to_string(found->second) + '\n' + role.name,
                     static_cast<std::uint32_t>(evictable.spare_of_role.size()));
    evictable.spare_of_role.push_back(have[role.name] - role.minimum);
  }
  if (!gang.spec.waits_for.empty()) evictable.spare = 0;  // its size is not known
  pool_.gangs.push_back(std::move(evictable));
  return found->second;
}

void VictimPoolBuilder::put(const std::string& uid, const Booking& booking, bool proposed,
                            std::vector<std::uint32_t> budgets) {
  const auto [found, is_new] = at_.try_emplace(uid, pool_.pods.size());
  if (!is_new) {  // came along with its gang
    placement::EvictablePod& known = pool_.pods[found->second];
    known.proposed = known.proposed || proposed;
    if (known.budgets.empty()) known.budgets = std::move(budgets);
    return;
  }
  placement::EvictablePod pod{*booking.allocation, priority_of(uid, booking), 0, false, {}};
  if (booking.started) pod.running = std::max<Nanoseconds>(0, clock_.since_1970() - *booking.started);
  pod.proposed = proposed;
  pod.budgets = std::move(budgets);
  uids_.push_back(uid);
  pool_.pods.push_back(std::move(pod));
}

void VictimPoolBuilder::add(const std::string& uid, const Booking& booking, bool proposed,
                            std::vector<std::uint32_t> budgets) {
  const GangRecord* gang = running_gang(uid, booking);
  if (gang != nullptr && whole_only_here_ && is_on_several_nodes(*gang)) return;
  put(uid, booking, proposed, std::move(budgets));
  if (gang == nullptr || gang_at_.contains(gang)) return;
  const std::uint32_t at = add_gang(*gang);
  for (const auto& [mate, member] : gang->members) {
    const Booking* held = bookings_.find(mate);
    if (held == nullptr || running_gang(mate, *held) == nullptr) continue;
    put(mate, *held, false, {});
    placement::EvictablePod& pod = pool_.pods[at_.find(mate)->second];
    pod.gang = at;
    const auto role = role_at_.find(std::to_string(at) + '\n' + member.pod.role);
    pod.role = role == role_at_.end() ? static_cast<std::uint32_t>(pool_.gangs[at].spare_of_role.size()) : role->second;
  }
}

void VictimPoolBuilder::add_held(const std::string& uid, const Booking& booking, const std::string& gang) {
  const auto [found, is_new] = held_at_.try_emplace(gang, static_cast<std::uint32_t>(pool_.gangs.size()));
  if (is_new) pool_.gangs.emplace_back();
  uids_.push_back(uid);
  placement::EvictablePod pod{*booking.allocation, std::numeric_limits<std::int32_t>::min(), 0, false, {}};
  pod.gang = found->second;
  pod.role = 0;
  pool_.pods.push_back(std::move(pod));
}

}  // namespace mortise::extender
