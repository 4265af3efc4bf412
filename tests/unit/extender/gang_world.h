// The world of the property test of gangs: who is there, as the API server has it, and an extender that may start anew.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/base/rng.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {

struct Pod {
  placement::PodRequest request;
  std::string gang;
  std::string role;
  std::string node;      // where it is bound
  std::string answered;  // where it was told to go, and is not bound yet
  std::string slot;      // the annotation of its Binding
};

/// Where the members of a plan were, by UID, when the first of them was about to be bound.
struct Noted {
  struct Place {
    std::string node;
    placement::DeviceSet devices;
  };
  int number = 0;  // of plans of its gang
  std::map<std::string, Place> places;
};

/// What the world knows of a gang: made when it is created, never taken from the code under test.
struct Group {
  GangSpec spec;
  std::int32_t gpus = 1;
  std::int32_t members_left = 0;  // still to come
  bool object_there = true;
  int succeeded = 0;
  std::optional<Nanoseconds> held_since;  // places that nobody is bound to
};

class GangWorld {
 public:
  int places_kept = 0;  ///< members that had their places of the plan again after a start

 protected:
  static constexpr int kNodes = 6;
  static constexpr int kGpus = 8;

  explicit GangWorld(std::uint64_t seed) : rng_(seed) {
    for (int n = 0; n < kNodes; ++n) nodes_.insert("n" + std::to_string(n));
    start();
  }

  void start() {
    gangs_.reset();
    cluster_ = std::make_unique<placement::ClusterState>();
    bookings_ = std::make_unique<Bookings>(*cluster_);
    domains_ = std::make_unique<placement::Domains>(*cluster_, std::vector<placement::TopologyLevel>{{"rack", "rack"}});
    policy_ = *placement::make_policy("best-fit", placement::TypicalPods());
    for (const std::string& node : nodes_) tell_node(node);
    gangs_ = std::make_unique<Gangs>(*bookings_, *cluster_, *domains_, *policy_, 1, clock_);
    gangs_->keep_plans();
  }

  static std::string rack(const std::string& node) { return node < "n3" ? "r1" : "r2"; }
  void tell_node(const std::string& name) {
    const NodeId id = *cluster_->add_node({name, 64'000, 512'000 * kMiB, 110, kGpus, "A100"}, hash_text(name));
    domains_->set_node(id, std::vector<placement::Label>{{"rack", rack(name)}});
  }

  GangSpec spec_of(const Group& group) const {
    GangSpec spec = group.spec;
    if (!group.object_there) {
      spec.waits_for = "its group object";
      spec.minimum = 0;
    }
    return spec;
  }

  void see(const Pod& pod) {
    if (!pod.gang.empty()) gangs_->see(spec_of(groups_.at(pod.gang)), {pod.request, pod.role, ""});
  }

  bool is_binding(const std::string& uid) const {
    const Booking* booking = bookings_->find(uid);
    return booking != nullptr && booking->stage == Booking::Stage::kBinding;
  }

  /// A plan is known by its name; the places in it are those that the bookings hold, not what its text says.
  void note_plan(const std::string& gang, const GangSlotNote& slot) {
    ASSERT_FALSE(slot.annotation.empty());
    if (slot.map) maps_.insert_or_assign(slot.map->name, slot.map->text);
    const auto [noted, is_new] = noted_.try_emplace(slot.plan);
    if (!is_new) return;
    noted->second.number = ++serial_;
    for (const auto& [uid, pod] : pods_) {
      const Booking* booking = pod.gang == gang && pod.node.empty() ? bookings_->find(uid) : nullptr;
      if (booking == nullptr || !booking->allocation) continue;
      noted->second.places[uid] = {booking->node, cluster_->allocation(*booking->allocation)->devices};
    }
  }

  /// All that the extender only remembers is lost; what is bound, and who there is, it is told again, in any order.
  void restart() {
    stop_and_start();
    const std::map<std::string, Noted::Place> expected = places_of_plans();
    restore();
    for (const auto& [uid, place] : expected) must_have(uid, place);
  }

  void restore() {
    std::vector<SlotClaim> claims;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.node.empty() && !pod.slot.empty()) claims.push_back({uid, pod.slot});
    }
    Gangs::PlanTexts texts;
    for (const PlanMapName& name : gangs_->maps_claimed(claims)) texts.emplace(name, maps_.at(name));
    const auto refused = gangs_->restore(claims, texts);
    ASSERT_TRUE(refused.empty()) << refused.front().pod << ": " << refused.front().why;
  }

  /// Of members that wait: the place in the latest plan that somebody who is there is bound by.
  std::map<std::string, Noted::Place> places_of_plans() {
    std::map<std::string, std::pair<int, Noted::Place>> latest;
    for (const auto& [bound, pod] : pods_) {
      const std::size_t at = pod.slot.find("\"plan\":\"");
      if (pod.node.empty() || at == std::string::npos) continue;
      const Noted& noted = noted_.at(pod.slot.substr(at + 8, 32));
      for (const auto& [uid, place] : noted.places) {
        const auto other = pods_.find(uid);
        if (other == pods_.end() || other->second.gang != pod.gang || !other->second.node.empty()) continue;
        auto& known = latest[uid];
        if (noted.number > known.first) known = {noted.number, place};
      }
    }
    std::map<std::string, Noted::Place> places;
    for (const auto& [uid, place] : latest) places.emplace(uid, place.second);
    return places;
  }

  /// On that node, with those devices: if they are there, and nobody else has them.
  void must_have(const std::string& uid, const Noted::Place& place) {
    const Group& group = groups_.at(pods_.at(uid).gang);
    const bool complete = count_of(pods_.at(uid).gang) >= group.spec.minimum;
    if (!group.object_there || !complete || !group.spec.roles.empty() || !nodes_.contains(place.node)) return;
    if (!group.spec.required_level.empty() && scattered_.contains(pods_.at(uid).gang)) return;
    const Booking* own = bookings_->find(uid);
    placement::DeviceSet free =
        own == nullptr ? placement::DeviceSet() : cluster_->allocation(*own->allocation)->devices;
    const auto& state = cluster_->state_of(*cluster_->find_node(place.node));
    bool all_free = true;
    place.devices.for_each([&](int device) {
      const bool mine = own != nullptr && own->node == place.node && free.contains(device);
      all_free = all_free && (mine || state.free[static_cast<std::size_t>(device)] == kWholeGpu);
    });
    if (!all_free) return;
    ++places_kept;
    ASSERT_NE(own, nullptr) << uid << " lost its place on " << place.node;
    ASSERT_EQ(own->node, place.node) << uid;
    ASSERT_EQ(free, place.devices) << uid;
  }
  int count_of(const std::string& key) const {
    const auto of_gang = [&key](const auto& entry) { return entry.second.gang == key; };
    return groups_.at(key).succeeded + static_cast<int>(std::count_if(pods_.begin(), pods_.end(), of_gang));
  }

  void stop_and_start() {
    // A Binding on its way comes to an end meanwhile.
    for (auto& [uid, pod] : pods_) {
      if (is_binding(uid)) {
        pod.node = bookings_->find(uid)->node;
        pod.slot = gangs_->slot_of(uid).annotation;
      }
      pod.answered.clear();
    }
    start();
    std::vector<std::string> uids;
    for (const auto& [uid, pod] : pods_) uids.push_back(uid);
    rng_.shuffle(uids);
    for (const std::string& uid : uids) {
      const Pod& pod = pods_.at(uid);
      if (!pod.node.empty()) bookings_->bound(pod.request, pod.node, {});
      see(pod);
    }
    for (const auto& [uid, pod] : done_) {
      if (!pod.gang.empty() && groups_.contains(pod.gang)) {
        see(pod);
        gangs_->succeeded(uid);
      }
    }
    // Whoever had succeeded and is gone is not known any more.
    for (auto& [key, group] : groups_) {
      group.held_since.reset();
      group.succeeded = static_cast<int>(std::count_if(
          done_.begin(), done_.end(), [&key = key](const auto& entry) { return entry.second.gang == key; }));
      lead_done_.erase(key);
    }
    for (const auto& [uid, pod] : done_) {
      if (pod.role == "lead") lead_done_.insert(pod.gang);
    }
    binds_.clear();
  }

  Rng rng_;
  ManualClock clock_;
  std::set<std::string> nodes_;
  std::string gone_node_;
  std::map<std::string, Pod> pods_;
  std::map<std::string, Pod> done_;  // succeeded, and their objects are there
  std::map<std::string, Group> groups_;
  std::set<std::string> lead_done_;
  std::set<std::string> scattered_;     // gangs with members on a node that left: which rack that was is not known then
  std::set<std::string> binds_;         // members of which a bind was begun
  std::map<std::string, Noted> noted_;  // by name of the plan
  std::map<PlanMapName, std::string> maps_;  // that were stored
  int serial_ = 0;
  std::unique_ptr<placement::ClusterState> cluster_;
  std::unique_ptr<Bookings> bookings_;
  std::unique_ptr<placement::Domains> domains_;
  std::unique_ptr<placement::Policy> policy_;
  std::unique_ptr<Gangs> gangs_;
};

}  // namespace mortise::extender
