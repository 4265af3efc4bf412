#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"
#include "scheduler/extender/observations.h"
#include "scheduler/kube/objects/decision_stamp.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/request.h"

namespace mortise::extender {

/// A pod that holds a place, or is about to.
struct Booking {
  enum class Stage {
    kReserved,  ///< answered by filter; until `expires`
    kBinding,   ///< the Binding is on its way; kept until it is known what became of it
    kBound,     ///< on its node
  };
  placement::PodRequest request;
  std::string node;
  Stage stage = Stage::kReserved;
  std::optional<AllocationId> allocation;  ///< none while its node is not known
  Nanoseconds expires = 0;
  placement::DeviceSet told;           ///< of a bound pod: those it was told to take; empty if none
  std::optional<Nanoseconds> started;  ///< since 1970; none: it has not, as far as is known
  kube::DecisionStamp decided;         ///< of a reserved or binding place
  bool leaving = false;                ///< it is being deleted
  std::uint64_t lists_begun = 0;       ///< of a bound pod: begin_list() so often before it was found bound

  /// Fewer devices are on record than it asks for: the others were not free when it was found.
  bool is_short(const placement::ClusterState& cluster) const;
};

/// Hears of every pod whose booking came, went or is at another stage. Must not change bookings.
class BookingsListener {
 public:
  virtual ~BookingsListener() = default;
  virtual void booking_changed(std::string_view uid) = 0;
};

/// Which pod holds what, by UID. Changes the cluster state; nothing else may change allocations. Not synchronised.
class Bookings {
 public:
  explicit Bookings(placement::ClusterState& cluster) : cluster_(cluster) {}

  const placement::ClusterState& cluster() const { return cluster_; }
  /// One listener at most, which must stop before it ends.
  void tell(BookingsListener& listener) { listener_ = &listener; }
  void stop_telling(const BookingsListener& listener) {
    if (listener_ == &listener) listener_ = nullptr;
  }
  /// The inside of the node of this name; null when the node, or its inside, is not known.
  const placement::NodeTopology* topology_of(std::string_view node) const;

  const Booking* find(std::string_view uid) const;
  std::size_t size() const { return by_uid_.size(); }
  std::size_t reserved() const { return expiry_.size(); }

  /// Holds a planned place for a while, in place of what the pod held before; an error means the plan is stale, and
  /// then the pod holds nothing. Not for pods that are binding or bound.
  Status reserve(const placement::PodRequest& pod, const placement::Placed& placed, Nanoseconds expires,
                 placement::Knowledge knowledge, const kube::DecisionStamp& decided = {});
  /// Gives back what is reserved; a pod that is binding or bound keeps its place.
  void drop_reservation(std::string_view uid);
  /// True: something was given back.
  bool drop_expired(Nanoseconds now);
  /// What is reserved for the pod ends then; nothing where it is not reserved.
  void extend(std::string_view uid, Nanoseconds expires);

  /// Runs f() in a cluster in which the pod's reservation, if it has one, is free.
  template <class F>
  auto without_reservation(std::string_view uid, F&& f) {
    const Booking* booking = find(uid);
    const placement::ClusterState::Mark mark = cluster_.mark();
    if (booking != nullptr && booking->stage == Booking::Stage::kReserved && booking->allocation) {
      (void)cluster_.release(*booking->allocation);
    }
    auto result = f();
    cluster_.undo(mark);
    return result;
  }

  /// Runs f(cluster) and takes back what it changed of the allocations.
  template <class F>
  auto try_out(F&& f) {
    const placement::ClusterState::Mark mark = cluster_.mark();
    auto result = f(cluster_);
    cluster_.undo(mark);
    return result;
  }

  /// The reserved place is being bound, and does not expire. False when the pod has none.
  bool start_binding(std::string_view uid);
  /// Whether it was bound is not known: the place is as good as reserved.
  void binding_unknown(std::string_view uid, Nanoseconds expires);
  /// It was not bound after all.
  void binding_failed(std::string_view uid);

  /// The pod is on the node, whatever was thought before. A place that was reserved there becomes the pod's; places
  /// reserved for others make way for it. `devices` are those it was told to take, empty if none; where kubelet
  /// chooses, they are only one possibility.
  void bound(const placement::PodRequest& pod, std::string_view node, const placement::DeviceSet& devices);
  /// Since when it has been running there, counted from 1970. Nothing when it holds no place.
  void started(std::string_view uid, Nanoseconds since_1970);
  /// The pod is being deleted: it holds its place until it is gone. Nothing when it holds none.
  void leaves(std::string_view uid);
  /// UIDs, in order.
  const std::set<std::string, std::less<>>& leaving() const { return leaving_; }
  /// The pod is gone or has ended.
  void ended(std::string_view uid);

  /// The pod was seen with these devices, or these pods of a node with so many GPUs of each NUMA node (see
  /// ClusterState). What cannot be used there changes nothing.
  void saw_devices(std::string_view uid, const placement::DeviceSet& devices, Witness by, std::string what);
  void saw_count(std::string_view node, const std::map<int, int>& gpus_held, const std::vector<AllocationId>& pods,
                 Witness by, std::string what);
  void could_not_ask() { observations_.note_failed_query(); }
  const Observations& observations() const { return observations_; }

  /// Pods that were found on this node before it was known take their places.
  void node_added(std::string_view node);
  /// Before the node leaves the cluster: its pods hold nothing until it is back or they are gone, and what is reserved
  /// there is dropped.
  void node_leaves(std::string_view node);

  /// Calls f(uid, booking) for the pods of a node, by UID.
  template <class F>
  void for_each_on(std::string_view node, F&& f) const {
    const auto pods = by_node_.find(node);
    if (pods == by_node_.end()) return;
    for (const std::string& uid : pods->second) f(uid, by_uid_.at(uid));
  }

  /// In order.
  std::vector<std::string> bound_uids() const;
  /// The nodes that have pods, by name.
  std::vector<std::string> nodes_with_pods() const;

  /// A list of the pods is asked for, the answer's number n: bound pods whose `lists_begun` is below n must be in it.
  std::uint64_t begin_list() { return ++lists_begun_; }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  Booking& put(const placement::PodRequest& pod, std::string_view node, Booking::Stage stage);
  void set_stage(const std::string& uid, Booking& booking, Booking::Stage stage);
  void forget(std::string_view uid);
  void give_back(Booking& booking);
  void take_place(Booking& booking);
  void resize(Booking& booking, const placement::PodRequest& pod);
  void free_devices(std::string_view node, const placement::DeviceSet& devices);
  void make_way(const std::string& uid);
  std::vector<std::string> reserved_on(std::string_view node) const;
  void note_told(const Booking& booking, bool held_others);
  bool honours_devices(std::string_view node) const;
  void complete_short_ones(std::string_view node);

  placement::ClusterState& cluster_;
  BookingsListener* listener_ = nullptr;
  std::uint64_t lists_begun_ = 0;
  std::unordered_map<std::string, Booking, TextHash, std::equal_to<>> by_uid_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> by_node_;
  std::set<std::pair<Nanoseconds, std::string>> expiry_;  // of reservations
  std::set<std::string, std::less<>> leaving_;
  Observations observations_;
};

}  // namespace mortise::extender
