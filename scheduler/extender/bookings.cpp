#include "scheduler/extender/bookings.h"

#include <algorithm>
#include <utility>

namespace mortise::extender {

using placement::DeviceSet;
using placement::Knowledge;
using placement::PodRequest;
using Stage = Booking::Stage;

bool Booking::is_short(const placement::ClusterState& cluster) const {
  if (!allocation) return false;
  return cluster.allocation(*allocation)->devices.size() < request.gpus;
}

const Booking* Bookings::find(std::string_view uid) const {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : &found->second;
}

Booking& Bookings::put(const PodRequest& pod, std::string_view node, Stage stage) {
  forget(pod.uid);
  by_node_[std::string(node)].insert(pod.uid);
  Booking& booking = by_uid_[pod.uid];
  booking.request = pod;
  booking.node = node;
  set_stage(pod.uid, booking, stage);
  return booking;
}

void Bookings::set_stage(const std::string& uid, Booking& booking, Stage stage) {
  booking.stage = stage;
  if (listener_ != nullptr) listener_->booking_changed(uid);
}

void Bookings::give_back(Booking& booking) {
  if (booking.allocation) (void)cluster_.release(*booking.allocation);
  booking.allocation.reset();
}

void Bookings::forget(std::string_view uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  Booking& booking = found->second;
  give_back(booking);
  if (booking.stage == Stage::kReserved) expiry_.erase({booking.expires, found->first});
  if (booking.leaving) leaving_.erase(found->first);
  const auto pods = by_node_.find(booking.node);
  pods->second.erase(pods->second.find(uid));
  if (pods->second.empty()) by_node_.erase(pods);
  const std::string gone = found->first;  // what `uid` is a view of may end here
  by_uid_.erase(found);
  if (listener_ != nullptr) listener_->booking_changed(gone);
}

Status Bookings::reserve(const PodRequest& pod, const placement::Placed& placed, Nanoseconds expires,
                         Knowledge knowledge, const kube::DecisionStamp& decided) {
  drop_reservation(pod.uid);
  if (find(pod.uid) != nullptr) return Error{"the pod is being bound"};
  const auto applied = cluster_.apply(cluster_.intern(pod), placed.node, placed.devices, knowledge);
  if (!applied) return applied.error();
  Booking& booking = put(pod, cluster_.node_name(placed.node), Stage::kReserved);
  booking.allocation = *applied;
  booking.expires = expires;
  booking.decided = decided;
  expiry_.emplace(expires, pod.uid);
  return ok_status();
}

void Bookings::drop_reservation(std::string_view uid) {
  const Booking* booking = find(uid);
  if (booking != nullptr && booking->stage == Stage::kReserved) ended(uid);
}

bool Bookings::drop_expired(Nanoseconds now) {
  bool any = false;
  while (!expiry_.empty() && expiry_.begin()->first <= now) {
    const std::string uid = expiry_.begin()->second;
    ended(uid);
    any = true;
  }
  return any;
}

void Bookings::extend(std::string_view uid, Nanoseconds expires) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end() || found->second.stage != Stage::kReserved) return;
  expiry_.erase({found->second.expires, found->first});
  found->second.expires = expires;
  expiry_.emplace(expires, found->first);
}

bool Bookings::start_binding(std::string_view uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end() || found->second.stage != Stage::kReserved) return false;
  expiry_.erase({found->second.expires, found->first});
  set_stage(found->first, found->second, Stage::kBinding);
  return true;
}

void Bookings::binding_unknown(std::string_view uid, Nanoseconds expires) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end() || found->second.stage != Stage::kBinding) return;
  set_stage(found->first, found->second, Stage::kReserved);
  found->second.expires = expires;
  expiry_.emplace(expires, found->first);
}

void Bookings::binding_failed(std::string_view uid) {
  const Booking* booking = find(uid);
  if (booking != nullptr && booking->stage == Stage::kBinding) ended(uid);
}

const placement::NodeTopology* Bookings::topology_of(std::string_view node) const {
  const auto known = cluster_.find_node(node);
  return known ? cluster_.topology_of(cluster_.machine_of(*known)) : nullptr;
}

/// Whether devices that a pod on this node was told to take are the ones it has.
bool Bookings::honours_devices(std::string_view node) const {
  const placement::NodeTopology* topology = topology_of(node);
  return topology == nullptr || topology->enforced();
}

void Bookings::bound(const PodRequest& pod, std::string_view node, const DeviceSet& devices) {
  const auto found = by_uid_.find(pod.uid);
  const bool has_place = found != by_uid_.end() && found->second.node == node && found->second.allocation;
  if (has_place) {
    Booking& booking = found->second;
    const DeviceSet& held = cluster_.allocation(*booking.allocation)->devices;
    const bool as_thought = devices.empty() || devices == held || !honours_devices(node);
    const bool same_gpus = booking.request.gpus == pod.gpus && booking.request.gpu_milli == pod.gpu_milli;
    if (as_thought && same_gpus) {
      if (!devices.empty()) {
        booking.told = devices;
      } else if (booking.stage != Stage::kBound) {
        booking.told = held;  // a place of ours: its Binding names them
      }
      if (booking.stage == Stage::kReserved) expiry_.erase({booking.expires, pod.uid});
      if (booking.stage != Stage::kBound) booking.lists_begun = lists_begun_;
      set_stage(pod.uid, booking, Stage::kBound);
      resize(booking, pod);
      return;
    }
  }
  const std::string before = found == by_uid_.end() ? std::string() : found->second.node;
  const bool bound_already = found != by_uid_.end() && found->second.stage == Stage::kBound;
  const std::uint64_t lists_begun = bound_already ? found->second.lists_begun : lists_begun_;
  Booking& booking = put(pod, node, Stage::kBound);
  booking.lists_begun = lists_begun;
  booking.told = devices;
  if (!devices.empty() && honours_devices(node)) free_devices(node, devices);
  take_place(booking);
  make_way(pod.uid);
  note_told(booking, has_place);
  if (!before.empty()) complete_short_ones(before);
}

/// Drops what is reserved of these devices: a pod that is bound has them.
void Bookings::free_devices(std::string_view node, const DeviceSet& devices) {
  for (const std::string& uid : reserved_on(node)) {
    const Booking& booking = by_uid_.find(uid)->second;
    if (!booking.allocation) continue;
    bool meets = false;
    cluster_.allocation(*booking.allocation)->devices.for_each([&](int d) { meets = meets || devices.contains(d); });
    if (meets) forget(uid);
  }
}

/// A pod that is bound and found too few devices free gets those that are only reserved, the latest reserved first:
/// whose place that was looks for another at bind.
void Bookings::make_way(const std::string& uid) {
  const Booking& booking = by_uid_.find(uid)->second;
  std::vector<std::string> reserved = reserved_on(booking.node);
  while (booking.is_short(cluster_) && !reserved.empty()) {
    drop_reservation(reserved.back());  // which completes those that are short
    reserved.pop_back();
  }
}

/// By the time at which they end.
std::vector<std::string> Bookings::reserved_on(std::string_view node) const {
  std::vector<std::pair<Nanoseconds, std::string>> found;
  for_each_on(node, [&](const std::string& uid, const Booking& booking) {
    if (booking.stage == Stage::kReserved) found.emplace_back(booking.expires, uid);
  });
  std::sort(found.begin(), found.end());
  std::vector<std::string> uids;
  for (auto& [expires, uid] : found) uids.push_back(std::move(uid));
  return uids;
}

/// CPU and memory of a running pod may be changed in place; its devices stay.
void Bookings::resize(Booking& booking, const PodRequest& pod) {
  booking.request = pod;
  const placement::Allocation held = *cluster_.allocation(*booking.allocation);
  const ShapeId shape = cluster_.intern(pod);
  if (shape == held.shape) return;
  give_back(booking);
  const bool exact = held.knowledge == Knowledge::kExact;
  const auto adopted = cluster_.adopt(shape, held.node, held.devices, exact ? Knowledge::kExact : Knowledge::kUnknown);
  if (adopted) booking.allocation = *adopted;
}

/// On nodes where we choose, the annotation is what the pod holds.
void Bookings::note_told(const Booking& booking, bool held_others) {
  const placement::NodeTopology* topology = topology_of(booking.node);
  if (topology == nullptr || !topology->enforced() || booking.told.empty() || !booking.allocation) return;
  const bool taken = cluster_.allocation(*booking.allocation)->devices != booking.told;
  observations_.note(booking.node,
                     held_others || taken ? placement::Observed::kMismatch : placement::Observed::kConsistent,
                     Witness::kAnnotation, "a pod's annotation");
}

void Bookings::take_place(Booking& booking) {
  const DeviceSet& devices = booking.told;
  const auto node = cluster_.find_node(booking.node);
  if (!node) return;
  const ShapeId shape = cluster_.intern(booking.request);
  if (!devices.empty() || booking.request.gpus == 0) {
    const auto adopted = cluster_.adopt(shape, *node, devices, Knowledge::kAssigned);
    if (adopted) {
      booking.allocation = *adopted;
      return;
    }
  }
  // The lowest free ones stand for those that are not known; there may be fewer than it holds.
  DeviceSet free;
  const placement::NodeState& state = cluster_.state_of(*node);
  for (int device = 0; device < state.devices && free.size() < booking.request.gpus; ++device) {
    if (state.free[static_cast<std::size_t>(device)] >= cluster_.shapes().shape(shape).gpu_milli) free.insert(device);
  }
  const auto adopted = cluster_.adopt(shape, *node, free, Knowledge::kUnknown);
  if (adopted) booking.allocation = *adopted;
}

void Bookings::saw_devices(std::string_view uid, const DeviceSet& devices, Witness by, std::string what) {
  const Booking* booking = find(uid);
  if (booking == nullptr || !booking->allocation) return;
  const auto seen = cluster_.observe_devices(*booking->allocation, devices);
  if (seen.ok()) observations_.note(booking->node, *seen, by, std::move(what));
}

void Bookings::saw_count(std::string_view node, const std::map<int, int>& gpus_held,
                         const std::vector<AllocationId>& pods, Witness by, std::string what) {
  const auto id = cluster_.find_node(node);
  if (!id) return;
  const auto seen = cluster_.observe_count(*id, gpus_held, pods);
  if (seen.ok()) observations_.note(node, *seen, by, std::move(what));
}

void Bookings::started(std::string_view uid, Nanoseconds since_1970) {
  const auto found = by_uid_.find(uid);
  if (found != by_uid_.end()) found->second.started = since_1970;
}

void Bookings::leaves(std::string_view uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  found->second.leaving = true;
  leaving_.emplace(uid);
}

void Bookings::ended(std::string_view uid) {
  const Booking* booking = find(uid);
  if (booking == nullptr) return;
  const std::string node = booking->node;
  forget(std::string(uid));
  complete_short_ones(node);
}

void Bookings::complete_short_ones(std::string_view node) {
  const auto pods = by_node_.find(node);
  if (pods == by_node_.end()) return;
  for (const std::string& uid : pods->second) {
    Booking& booking = by_uid_.at(uid);
    if (!booking.is_short(cluster_)) continue;
    give_back(booking);
    take_place(booking);
  }
}

void Bookings::node_added(std::string_view node) {
  const auto pods = by_node_.find(node);
  if (pods == by_node_.end()) return;
  // Those whose devices are known first: the others are given what is left.
  for (const bool told : {true, false}) {
    for (const std::string& uid : pods->second) {
      Booking& booking = by_uid_.at(uid);
      if (!booking.allocation && booking.told.empty() != told) take_place(booking);
    }
  }
}

void Bookings::node_leaves(std::string_view node) {
  observations_.forget(node);
  // The node may come back as another one; whoever was promised a place looks for it again at bind.
  for (const std::string& uid : reserved_on(node)) forget(uid);
  const auto pods = by_node_.find(node);
  if (pods == by_node_.end()) return;
  for (const std::string& uid : pods->second) give_back(by_uid_.at(uid));
}

std::vector<std::string> Bookings::nodes_with_pods() const {
  std::vector<std::string> names;
  names.reserve(by_node_.size());
  for (const auto& [name, pods] : by_node_) names.push_back(name);
  return names;
}

std::vector<std::string> Bookings::bound_uids() const {
  std::vector<std::string> uids;
  for (const auto& [uid, booking] : by_uid_) {
    if (booking.stage == Stage::kBound) uids.push_back(uid);
  }
  std::sort(uids.begin(), uids.end());
  return uids;
}

}  // namespace mortise::extender
