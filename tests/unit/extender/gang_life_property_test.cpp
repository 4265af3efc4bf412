// Gangs through all that may happen to them, in any order: members come late, ask, are bound or not, fail, end and come
// again, places run out, pods are evicted for them, nodes leave, the extender starts anew. After every step the world
// that the test keeps beside them must be one that is allowed. After a start, members that wait have the places of the
// plan that are free. MORTISE_GANG_STEPS sets the number of steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/extender/counted.h"
#include "tests/unit/extender/gang_world.h"

namespace mortise::extender {
namespace {

constexpr int kStepsPerWorld = 500;

class World : public GangWorld {
 public:
  int preempted = 0;  ///< times that somebody had to go

  explicit World(std::uint64_t seed) : GangWorld(seed) {}

  void step() {
    const std::uint64_t draw = rng_.below(25);
    if (draw < 2) return create();
    if (draw < 5) return join_of(any_group());
    if (draw < 9) return ask(any_pod(), rng_.below(8) == 0);
    if (draw < 13) return rng_.below(40) == 0 ? restart_amid_binds() : bind(any_answered());
    if (draw < 14) return remove(any_pod(), rng_.below(2) == 0);
    if (draw < 15) return succeed(any_bound());
    if (draw < 16) clock_.advance(static_cast<Nanoseconds>(rng_.below(20)) * kSecond);
    if (draw == 16) return rng_.below(4) == 0 ? restart() : single();
    if (draw == 17) return change_group();
    if (draw > 20) return preempt(any_pod());
    if (draw == 18) return rng_.below(4) == 0 ? flap_node() : remove_group();
    if (draw == 19 && rng_.below(6) == 0) return quiesce();
    tick();
  }

  /// The device of no node is held twice, and nothing is held for longer than it may.
  void check() {
    std::map<std::string, std::set<int>> held;
    for (const auto& [uid, pod] : pods_) {
      const Booking* booking = bookings_->find(uid);
      if (booking == nullptr || !booking->allocation) continue;
      cluster_->allocation(*booking->allocation)->devices.for_each([&, &uid = uid](int device) {
        ASSERT_TRUE(held[booking->node].insert(device).second) << uid << " shares " << booking->node << "/" << device;
      });
    }
    for (const auto& [key, gang] : gangs_->gangs()) ASSERT_EQ(Gangs::tally(gang), counted(gang, *bookings_)) << key;
    for (auto& [key, group] : groups_) {
      const bool holds = std::any_of(pods_.begin(), pods_.end(), [&, &key = key](const auto& entry) {
        return entry.second.gang == key && gangs_->place_of(entry.first).has_value();
      });
      if (!holds) group.held_since.reset();
      if (holds && !group.held_since) group.held_since = clock_.now();
    }
  }

 private:
  static constexpr Nanoseconds kHold = 60 * kSecond;  // GangTimes::reserve_for

  std::string any(const std::vector<std::string>& of) { return of.empty() ? "" : of[rng_.below(of.size())]; }
  template <class P>
  std::string any_pod_that(P&& wanted) {
    std::vector<std::string> found;
    for (const auto& [uid, pod] : pods_) {
      if (wanted(pod)) found.push_back(uid);
    }
    return any(found);
  }
  std::string any_pod() {
    return any_pod_that([](const Pod& pod) { return !pod.gang.empty(); });
  }
  std::string any_answered() {
    return any_pod_that([](const Pod& pod) { return !pod.answered.empty(); });
  }
  std::string any_bound() {
    return any_pod_that([](const Pod& pod) { return !pod.node.empty(); });
  }
  std::string any_group() {
    std::vector<std::string> keys;
    for (const auto& [key, group] : groups_) keys.push_back(key);
    return any(keys);
  }

  void create() {
    if (groups_.size() >= 8) return;
    const std::string key = "g" + std::to_string(++serial_);
    Group group;
    group.spec.key = group.spec.name = key;
    group.spec.minimum = 1 + static_cast<std::int32_t>(rng_.below(6));
    group.spec.priority = static_cast<std::int32_t>(rng_.below(3));
    if (rng_.below(2) == 0) group.spec.required_level = "rack";
    if (rng_.below(4) == 0) group.spec.roles = {{"lead", 1}};
    group.gpus = 1 << rng_.below(4);
    group.members_left = group.spec.minimum + static_cast<std::int32_t>(rng_.below(3));
    group.object_there = rng_.below(5) != 0;
    groups_.emplace(key, group);
    if (rng_.below(2) == 0) {
      for (int i = 0; i < 8; ++i) join_of(key);
    }
  }

  void join_of(const std::string& key) {
    if (key.empty() || groups_.at(key).members_left == 0) return;
    Group& group = groups_.at(key);
    --group.members_left;
    Pod pod;
    pod.gang = key;
    const bool has_lead = std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
      return entry.second.gang == key && entry.second.role == "lead";
    });
    if (!group.spec.roles.empty()) pod.role = has_lead ? "worker" : "lead";
    pod.request.uid = "p" + std::to_string(++serial_);
    pod.request.name = pod.request.uid;
    pod.request.ns = "default";
    pod.request.cpu = 100;
    pod.request.gpus = pod.role == "lead" ? 0 : group.gpus;
    pod.request.priority = *group.spec.priority;
    pods_.emplace(pod.request.uid, pod);
    see(pod);
  }
  std::vector<NodeId> offered(bool few) {
    std::vector<NodeId> ids;
    for (const std::string& node : nodes_) {
      if (!few || rng_.below(3) != 0) ids.push_back(*cluster_->find_node(node));
    }
    return ids;
  }

  void ask(const std::string& uid, bool few) {
    if (uid.empty() || !pods_.at(uid).node.empty() || is_binding(uid)) return;
    Pod& pod = pods_.at(uid);
    const std::vector<NodeId> nodes = offered(few);
    std::optional<Nanoseconds>& held = groups_.at(pod.gang).held_since;
    const std::uint64_t plans = gangs_->figures().plans;
    const GangAnswer answer = gangs_->ask(uid, nodes);
    if (gangs_->figures().plans != plans) held.reset();  // somebody asked, so places are taken anew
    pod.answered.clear();
    if (answer.kind != GangAnswer::Kind::kPlace) {
      ASSERT_FALSE(answer.reason.empty());
      return;
    }
    ASSERT_NE(std::find(nodes.begin(), nodes.end(), answer.node), nodes.end());
    pod.answered = cluster_->node_name(answer.node);
    must_be_whole(pod);
  }

  /// All that must start together have a place, in one rack if so asked: counted from what the bookings hold.
  void must_be_whole(const Pod& member) {
    const Group& group = groups_.at(member.gang);
    int have = group.succeeded;
    int leads = 0;
    std::set<std::string> racks;
    for (const auto& [uid, pod] : pods_) {
      const Booking* booking = pod.gang == member.gang ? bookings_->find(uid) : nullptr;
      if (booking == nullptr) continue;
      ++have;
      leads += pod.role == "lead";
      racks.insert(rack(booking->node));
    }
    ASSERT_TRUE(group.object_there);
    ASSERT_GE(have, group.spec.minimum) << member.gang;
    ASSERT_TRUE(group.spec.roles.empty() || leads > 0 || lead_done_.contains(member.gang)) << member.gang;
    ASSERT_TRUE(group.spec.required_level.empty() || racks.size() <= 1 || scattered_.contains(member.gang))
        << member.gang;
  }

  void bind(const std::string& uid, bool succeeds = false) {
    if (uid.empty()) return;
    Pod& pod = pods_.at(uid);
    const std::string node = pod.answered;
    const std::string why = gangs_->start_bind(uid, node);
    if (!why.empty()) {
      pod.answered.clear();
      return;
    }
    must_be_whole(pod);
    const GangSlotNote slot = gangs_->slot_of(uid);
    note_plan(pod.gang, slot);
    ASSERT_TRUE(bookings_->start_binding(uid));
    if (!binds_.contains(uid)) groups_.at(pod.gang).held_since.reset();  // the time begins anew, once for each
    binds_.insert(uid);
    pod.answered.clear();
    switch (succeeds ? 9 : rng_.below(10)) {
      case 0:
        bookings_->binding_failed(uid);
        gangs_->freed();
        return;
      case 1:
        bookings_->binding_unknown(uid, clock_.now() + kHold);
        groups_.at(pod.gang).held_since.reset();  // this one is kept for so long from now
        return;
      default:
        bookings_->bound(pod.request, node, {});
        gangs_->bound_with(uid, slot.plan);
        pod.node = node;
        pod.slot = slot.annotation;
    }
  }

  /// kube-scheduler asks who is to go for a member. Some of those go at once, some take their time.
  void preempt(const std::string& uid) {
    if (uid.empty() || !pods_.at(uid).node.empty() || is_binding(uid)) return;
    std::vector<RoomToMake> rooms;
    for (const NodeId node : offered(true)) rooms.push_back({node});
    const auto victims = gangs_->preempt(uid, rooms);
    if (!victims) return;
    std::map<std::string, int> evicted;
    for (const std::string& victim : victims->uids) {
      const Pod& pod = pods_.at(victim);
      ASSERT_LT(pod.request.priority, pods_.at(uid).request.priority);
      if (!pod.gang.empty()) ++evicted[pod.gang];
    }
    for (const auto& [gang, count] : evicted) {
      int stay = 0;
      for (const auto& [other, pod] : pods_) {
        const Booking* booking = pod.gang == gang && !pod.node.empty() ? bookings_->find(other) : nullptr;
        stay += booking != nullptr && booking->allocation && !booking->leaving;  // not on a node that has left
      }
      stay -= count;
      const Group& group = groups_.at(gang);
      ASSERT_TRUE(stay == 0 || stay + group.succeeded >= group.spec.minimum) << gang << " is cut to " << stay;
    }
    ++preempted;
    for (const std::string& victim : victims->uids) {
      rng_.below(3) == 0 ? bookings_->leaves(victim) : remove(victim, false);
    }
  }

  void remove(const std::string& uid, bool comes_again) {
    if (uid.empty()) return;
    const Pod pod = pods_.at(uid);
    if (is_binding(uid)) return;
    gangs_->gone(uid);
    bookings_->ended(uid);
    pods_.erase(uid);
    if (pod.gang.empty()) return;
    if (comes_again) ++groups_.at(pod.gang).members_left;
    forget_if_over(pod.gang);
  }
  void forget_if_over(const std::string& key) {
    const auto is_of = [&key = key](const auto& entry) { return entry.second.gang == key; };
    if (std::any_of(pods_.begin(), pods_.end(), is_of) || std::any_of(done_.begin(), done_.end(), is_of)) return;
    // The code forgets it with its last member, and so who has succeeded.
    groups_.at(key).succeeded = 0;
    lead_done_.erase(key);
    if (groups_.at(key).members_left == 0) groups_.erase(key);
  }

  void succeed(const std::string& uid) {
    if (uid.empty()) return;
    const Pod pod = pods_.at(uid);
    if (!pod.gang.empty()) {
      gangs_->succeeded(uid);
      ++groups_.at(pod.gang).succeeded;
      if (pod.role == "lead") lead_done_.insert(pod.gang);
    }
    bookings_->ended(uid);
    pods_.erase(uid);
    if (rng_.below(2) == 0) return void(done_.emplace(uid, pod));  // its object stays
    gangs_->gone(uid);
    if (!pod.gang.empty()) forget_if_over(pod.gang);
  }

  /// A pod of no gang takes what is left, if no gang has it kept.
  void single() {
    Pod pod;
    pod.request.uid = "s" + std::to_string(++serial_);
    pod.request.gpus = 1 + static_cast<std::int32_t>(rng_.below(4));
    for (const std::string& node : nodes_) {
      const NodeId id = *cluster_->find_node(node);
      if (cluster_->state_of(id).whole_free() < pod.request.gpus || gangs_->kept_from(id, pod.request.uid, 0)) continue;
      placement::DeviceSet devices;
      for (int d = 0; devices.size() < pod.request.gpus; ++d) {
        if (cluster_->state_of(id).free[static_cast<std::size_t>(d)] == kWholeGpu) devices.insert(d);
      }
      bookings_->bound(pod.request, node, devices);
      pod.node = node;
      pods_.emplace(pod.request.uid, pod);
      return;
    }
    const std::string other = any_pod_that([](const Pod& p) { return p.gang.empty(); });
    if (!other.empty()) remove(other, false);
  }

  void change_group() {
    const std::string key = any_group();
    if (key.empty()) return;
    Group& group = groups_.at(key);
    if (rng_.below(2) == 0) {
      group.object_there = !group.object_there;
    } else {
      ++group.spec.minimum;
      ++group.members_left;
    }
    gangs_->respecify(spec_of(group));
  }

  void remove_group() {
    const std::string key = any_group();
    if (key.empty()) return;
    groups_.at(key).members_left = 0;
    std::vector<std::string> uids;
    for (const auto& [uid, pod] : pods_) {
      if (pod.gang == key && !is_binding(uid)) uids.push_back(uid);
    }
    for (const std::string& uid : uids) remove(uid, false);
    for (const auto& [uid, pod] : done_) {
      if (pod.gang == key) gangs_->gone(uid);
    }
    std::erase_if(done_, [&key = key](const auto& entry) { return entry.second.gang == key; });
    if (groups_.contains(key)) forget_if_over(key);
  }

  void flap_node() {
    if (!gone_node_.empty()) {
      nodes_.insert(gone_node_);
      tell_node(gone_node_);
      bookings_->node_added(gone_node_);
      gangs_->nodes_changed();
      gone_node_.clear();
      return;
    }
    gone_node_ = *std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(rng_.below(nodes_.size())));
    nodes_.erase(gone_node_);
    for (const auto& [uid, pod] : pods_) {
      if (pod.node == gone_node_) scattered_.insert(pod.gang);
    }
    const NodeId id = *cluster_->find_node(gone_node_);
    bookings_->node_leaves(gone_node_);
    gangs_->node_left(id);
    domains_->remove_node(id);
    ASSERT_TRUE(cluster_->remove_node(id).ok());
  }

  /// Some member of some gang is bound, others are not.
  void restart_amid_binds() {
    const std::string uid = any_answered();
    bind(uid, true);
    restart();
  }

  void tick() {
    gangs_->tick();
    while (gangs_->next_kick()) {
    }
    check();
    for (const auto& [key, group] : groups_) {
      ASSERT_TRUE(!group.held_since || clock_.now() - *group.held_since <= kHold) << key << " holds places for ever";
    }
    ASSERT_TRUE(cluster_->check().ok());
  }

  /// When everybody has been asked about again, no gang is left waiting that fits.
  void quiesce() {
    clock_.advance(kHold + kSecond);
    tick();
    for (int round = 0; round < 3; ++round) {
      std::vector<std::string> uids;
      for (const auto& [uid, pod] : pods_) {
        if (!pod.gang.empty() && pod.node.empty()) uids.push_back(uid);
      }
      rng_.shuffle(uids);
      for (const std::string& uid : uids) {
        ask(uid, false);
        if (!pods_.at(uid).answered.empty()) bind(uid, true);
      }
    }
    for (const auto& [key, group] : groups_) {
      if (may_wait(key, group)) continue;
      FAIL() << key << " waits, and fits";
    }
  }

  /// Judged by counting: members of one size fit on a node as often as its free GPUs hold them.
  bool may_wait(const std::string& key, const Group& group) {
    int waiting = 0;
    std::string member;
    std::int32_t priority = 0;
    for (const auto& [uid, pod] : pods_) {
      if (pod.gang != key) continue;
      if (bookings_->find(uid) != nullptr) return true;
      ++waiting;
      member = uid;
      priority = pod.request.priority;
    }
    if (!group.spec.roles.empty()) return true;  // not only of one size
    if (!group.object_there || group.succeeded > 0 || waiting < group.spec.minimum || waiting == 0) return true;
    std::map<std::string, int> room;
    for (const std::string& node : nodes_) {
      if (gangs_->kept_from(*cluster_->find_node(node), member, priority)) continue;
      const std::string domain = group.spec.required_level.empty() ? "" : rack(node);
      room[domain] += cluster_->state_of(*cluster_->find_node(node)).whole_free() / group.gpus;
    }
    return std::none_of(room.begin(), room.end(), [&](const auto& r) { return r.second >= group.spec.minimum; });
  }
};

TEST(GangLife, WhateverHappensTheInvariantsHold) {
  const char* asked = std::getenv("MORTISE_GANG_STEPS");
  const long steps = asked != nullptr ? std::atol(asked) : 50'000;
  long places_kept = 0;
  long preempted = 0;
  for (long done = 0; done < steps; done += kStepsPerWorld) {
    SCOPED_TRACE("world " + std::to_string(done / kStepsPerWorld));
    World world(static_cast<std::uint64_t>(done / kStepsPerWorld) + 1);
    for (int i = 0; i < kStepsPerWorld && !testing::Test::HasFatalFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      world.step();
      world.check();
    }
    if (testing::Test::HasFatalFailure()) return;
    places_kept += world.places_kept;
    preempted += world.preempted;
  }
  EXPECT_GT(places_kept, steps / 1000);
  EXPECT_GT(preempted, steps / 5000);
}

}  // namespace
}  // namespace mortise::extender
