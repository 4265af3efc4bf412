// What is left of the plan of a gang when the extender ends while members are being bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/extender/gangs.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {
namespace {

using placement::DeviceSet;
using testing::HasSubstr;

/// An extender, and what the API server would have of the nodes, pods and plans.
class RestoreTest : public testing::Test {
 protected:
  struct Pod {
    GangSpec spec;
    GangPod pod;
    std::string node;
    DeviceSet devices;
    std::string slot;  // the annotation
  };

  void node(const std::string& name, const std::string& rack = "r1") {
    nodes_.emplace_back(name, rack);
    if (gangs_) add(name, rack);
  }
  void start() {
    gangs_.reset();
    cluster_ = std::make_unique<placement::ClusterState>();
    bookings_ = std::make_unique<Bookings>(*cluster_);
    domains_ = std::make_unique<placement::Domains>(*cluster_, std::vector<placement::TopologyLevel>{{"rack", "rack"}});
    policy_ = *placement::make_policy("best-fit", placement::TypicalPods());
    for (const auto& [name, rack] : nodes_) add(name, rack);
    gangs_ = std::make_unique<Gangs>(*bookings_, *cluster_, *domains_, *policy_, 1, clock_);
    gangs_->keep_plans();
    for (const auto& [uid, pod] : pods_) tell(pod);
  }
  /// Nothing is remembered but what the API server has.
  std::vector<RefusedSlot> restart() {
    start();
    std::vector<SlotClaim> claims;
    for (const auto& [uid, pod] : pods_) {
      if (!pod.slot.empty()) claims.push_back({uid, pod.slot});
    }
    Gangs::PlanTexts texts;
    for (const PlanMapName& name : gangs_->maps_claimed(claims)) {
      const auto map = maps_.find(name);
      texts.emplace(name, map == maps_.end() ? Result<std::string>(Error{"gone"}) : Result<std::string>(map->second));
    }
    return gangs_->restore(claims, texts);
  }

  static GangSpec gang(const std::string& key, std::int32_t minimum, const std::string& level = "") {
    GangSpec spec;
    spec.key = spec.name = key;
    spec.minimum = minimum;
    spec.required_level = level;
    return spec;
  }
  void member(const GangSpec& spec, const std::string& name, int gpus) {
    Pod pod;
    pod.spec = spec;
    pod.pod.request.ns = "default";
    pod.pod.request.uid = pod.pod.request.name = name;
    pod.pod.request.gpus = gpus;
    tell(pods_.insert_or_assign(name, pod).first->second);
  }
  void members(const GangSpec& spec, int from, int to, int gpus) {
    for (int i = from; i < to; ++i) member(spec, spec.key + "-" + std::to_string(i), gpus);
  }
  /// A pod of no gang that is bound to these devices.
  void hold(const std::string& uid, const std::string& on, int from, int to) {
    Pod pod;
    pod.pod.request.uid = uid;
    pod.pod.request.gpus = to - from;
    pod.node = on;
    for (int d = from; d < to; ++d) pod.devices.insert(d);
    tell(pods_.insert_or_assign(uid, pod).first->second);
  }
  void end(const std::string& uid) {
    gangs_->gone(uid);
    bookings_->ended(uid);
    pods_.erase(uid);
  }
  std::string where(const std::string& uid) {
    std::vector<NodeId> all;
    for (const auto& [name, rack] : nodes_) all.push_back(*cluster_->find_node(name));
    const GangAnswer answer = gangs_->ask(uid, all);
    return answer.kind == GangAnswer::Kind::kPlace ? cluster_->node_name(answer.node) : answer.reason;
  }
  /// Asks, and is bound as its Binding says.
  std::string run(const std::string& uid) {
    const std::string node = where(uid);
    if (!cluster_->find_node(node)) return node;
    const std::string why = gangs_->start_bind(uid, node);
    if (!why.empty()) return why;
    const GangSlotNote slot = gangs_->slot_of(uid);
    if (slot.map) maps_[slot.map->name] = slot.map->text;
    Pod& pod = pods_.at(uid);
    pod.slot = slot.annotation;
    pod.node = node;
    pod.devices = devices(uid);
    bookings_->start_binding(uid);
    bookings_->bound(pod.pod.request, node, {});
    gangs_->bound_with(uid, slot.plan);
    return node;
  }
  DeviceSet devices(const std::string& uid) const {
    const Booking* booking = bookings_->find(uid);
    return booking == nullptr ? DeviceSet() : cluster_->allocation(*booking->allocation)->devices;
  }
  /// The node that is reserved for it.
  std::string place(const std::string& uid) const {
    const auto node = gangs_->place_of(uid);
    return node ? cluster_->node_name(*node) : "";
  }
  const GangRecord& record(const std::string& key) const { return gangs_->gangs().find(key)->second; }
  std::uint64_t refused(SlotFault fault) const {
    return gangs_->figures().slots_refused[static_cast<std::size_t>(fault)];
  }

  ManualClock clock_;
  std::map<std::string, Pod> pods_;
  std::map<PlanMapName, std::string> maps_;
  std::vector<std::pair<std::string, std::string>> nodes_;
  std::unique_ptr<placement::ClusterState> cluster_;
  std::unique_ptr<Bookings> bookings_;
  std::unique_ptr<placement::Domains> domains_;
  std::unique_ptr<placement::Policy> policy_;
  std::unique_ptr<Gangs> gangs_;

 private:
  void add(const std::string& name, const std::string& rack) {
    const NodeId id = *cluster_->add_node({name, 64'000, 512'000 * kMiB, 110, 8, "A100"}, cluster_->node_count());
    domains_->set_node(id, std::vector<placement::Label>{{"rack", rack}});
  }
  void tell(const Pod& pod) {
    if (!pod.node.empty()) bookings_->bound(pod.pod.request, pod.node, pod.devices);
    if (!pod.spec.key.empty()) gangs_->see(pod.spec, pod.pod);
  }
};

TEST_F(RestoreTest, MembersThatWaitGetThePlacesOfThePlanBack) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) node(name);
  start();
  const GangSpec spec = gang("g", 4);
  members(spec, 0, 4, 8);
  run("g-0");
  run("g-1");
  const std::string second = place("g-2");
  const std::string third = place("g-3");
  ASSERT_FALSE(second.empty());
  ASSERT_NE(second, third);
  EXPECT_TRUE(restart().empty());
  EXPECT_EQ(place("g-2"), second);
  EXPECT_EQ(place("g-3"), third);
  EXPECT_EQ(gangs_->phase(record("g")), GangPhase::kBinding);
  EXPECT_EQ(gangs_->figures().restored, 2U);
  EXPECT_EQ(run("g-2"), second);
  EXPECT_EQ(run("g-3"), third);
  EXPECT_EQ(gangs_->phase(record("g")), GangPhase::kRunning);
}

/// Both waiting members may have been told to wait before, and kube-scheduler would not ask about them by itself.
TEST_F(RestoreTest, MembersThatGotTheirPlacesBackAreWokenAndTheirTimeBeginsAnew) {
  node("a");
  node("b");
  node("c");
  start();
  members(gang("g", 3), 0, 3, 8);
  run("g-0");
  clock_.advance(50 * kSecond);
  restart();
  std::vector<std::string> woken;
  while (const auto kick = gangs_->next_kick()) woken.push_back(kick->uid);
  EXPECT_EQ(woken, (std::vector<std::string>{"g-1", "g-2"}));
  clock_.advance(59 * kSecond);
  gangs_->tick();
  EXPECT_EQ(bookings_->reserved(), 2U);
  clock_.advance(2 * kSecond);
  gangs_->tick();
  EXPECT_EQ(bookings_->reserved(), 0U);
}

/// Devices 0 and 1 are held by another pod while the gang is planned, so its members have 2,3 4,5 and 6,7 in some
/// order: each has its own again, although 0 and 1 are free now.
TEST_F(RestoreTest, EachMemberHasTheDevicesOfThePlan) {
  node("a");
  start();
  hold("other", "a", 0, 2);
  members(gang("g", 3), 0, 3, 2);
  run("g-1");
  const DeviceSet first = devices("g-0");
  const DeviceSet last = devices("g-2");
  ASSERT_EQ(first.size(), 2);
  pods_.erase("other");
  restart();
  EXPECT_EQ(devices("g-0"), first);
  EXPECT_EQ(devices("g-2"), last);
}

TEST_F(RestoreTest, OnANodeWithRoomOtherDevicesStandForThoseThatAreTaken) {
  node("a");
  start();
  members(gang("g", 2), 0, 2, 2);
  run("g-0");
  int lowest = -1;
  devices("g-1").for_each([&](int device) { lowest = lowest < 0 ? device : lowest; });
  hold("other", "a", lowest, lowest + 1);  // it came while no extender was there
  restart();
  EXPECT_EQ(place("g-1"), "a");
  EXPECT_EQ(devices("g-1").size(), 2);
  EXPECT_FALSE(devices("g-1").contains(lowest));
}

TEST_F(RestoreTest, AMemberWhoseNodeIsTakenIsPlannedAnewAndTheOthersWaitForIt) {
  for (const char* name : {"a", "b", "c"}) node(name);
  start();
  members(gang("g", 3), 0, 3, 8);
  run("g-0");
  const std::string taken = place("g-1");
  const std::string kept = place("g-2");
  hold("other", taken, 0, 1);
  restart();
  EXPECT_EQ(place("g-1"), "");
  EXPECT_EQ(place("g-2"), kept);
  EXPECT_THAT(gangs_->start_bind("g-2", kept), HasSubstr("not all held"));
  node("d");
  EXPECT_EQ(run("g-1"), "d");
  EXPECT_EQ(run("g-2"), kept);
}

TEST_F(RestoreTest, APlanOfMoreThanSixteenIsInAConfigMap) {
  for (int i = 0; i < 20; ++i) node("n" + std::to_string(i));
  start();
  members(gang("g", 17), 0, 17, 8);
  run("g-0");
  ASSERT_EQ(maps_.size(), 1U);
  EXPECT_EQ(pods_.at("g-0").slot.find("\"all\""), std::string::npos);
  std::map<std::string, std::string> planned;
  for (int i = 1; i < 17; ++i) planned["g-" + std::to_string(i)] = place("g-" + std::to_string(i));
  EXPECT_TRUE(restart().empty());
  for (const auto& [uid, on] : planned) EXPECT_EQ(place(uid), on) << uid;
}

TEST_F(RestoreTest, ALostOrChangedConfigMapIsSaidAndTheGangIsPlannedAnew) {
  for (int i = 0; i < 20; ++i) node("n" + std::to_string(i));
  start();
  members(gang("g", 17), 0, 17, 8);
  run("g-0");
  auto map = *maps_.begin();
  maps_.clear();
  std::vector<RefusedSlot> said = restart();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said.front().pod, "default/g-0");
  EXPECT_EQ(said.front().why, "gone");
  EXPECT_EQ(refused(SlotFault::kLost), 1U);
  EXPECT_EQ(bookings_->reserved(), 0U);
  // Somebody may write it who is not us, but not so that it keeps its name.
  map.second.replace(map.second.find("\"rev\":1"), 7, "\"rev\":2");
  maps_.insert(map);
  said = restart();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said.front().why, HasSubstr("holds another plan"));
  EXPECT_EQ(refused(SlotFault::kInconsistent), 1U);
  EXPECT_EQ(bookings_->reserved(), 0U);
  for (int i = 1; i < 17; ++i) EXPECT_TRUE(cluster_->find_node(run("g-" + std::to_string(i)))) << i;
  EXPECT_EQ(gangs_->phase(record("g")), GangPhase::kRunning);
}

/// A pod's own word counts only where all agrees: gang, plan, member and node.
TEST_F(RestoreTest, WhatABoundPodSaysOfOthersIsNotBelieved) {
  for (const char* name : {"a", "b", "c", "d", "e"}) node(name);
  start();
  members(gang("g", 2), 0, 2, 8);
  members(gang("h", 2), 0, 2, 8);
  run("g-0");
  run("h-0");
  const std::string good = pods_.at("g-0").slot;
  const std::string of_h = pods_.at("h-0").slot;
  const auto check = [&](const std::string& slot, SlotFault fault, const std::string& why) {
    pods_.at("g-0").slot = slot;
    const auto said = restart();
    ASSERT_EQ(said.size(), 1U) << why;
    EXPECT_THAT(said.front().why, HasSubstr(why));
    EXPECT_EQ(refused(fault), 1U) << why;
    EXPECT_EQ(place("g-1"), "") << why;
    EXPECT_NE(place("h-1"), "") << why;  // others are not touched by it
  };
  check("all mine", SlotFault::kMalformed, "not a JSON object");
  check(of_h, SlotFault::kInconsistent, "another gang");
  std::string other = good;
  other.replace(other.find("\"rev\":1"), 7, "\"rev\":2");
  check(other, SlotFault::kInconsistent, "another one than it names");
  other = good;
  const std::size_t index = other.find("\"index\":") + 8;
  other[index] = other[index] == '0' ? '1' : '0';
  check(other, SlotFault::kInconsistent, "for another pod");
  other[index] = '7';
  check(other, SlotFault::kInconsistent, "no such slot");
  Pod& moved = pods_.at("g-0");
  const std::string was = moved.node;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    if (bookings_->find("g-0")->node != name && place("h-1") != name && pods_.at("h-0").node != name) moved.node = name;
  }
  check(good, SlotFault::kInconsistent, "on another node");
  pods_.at("g-0").node = was;
  pods_.at("g-0").slot = good;
  EXPECT_TRUE(restart().empty());
  EXPECT_NE(place("g-1"), "");
}

/// What waits may carry any annotation: without the admission policy its maker writes it.
TEST_F(RestoreTest, APodThatWaitsIsNotAsked) {
  for (const char* name : {"a", "b"}) node(name);
  start();
  members(gang("g", 2), 0, 2, 8);
  run("g-0");
  pods_.at("g-1").slot = pods_.at("g-0").slot;
  pods_.at("g-0").slot.clear();
  EXPECT_TRUE(restart().empty());
  EXPECT_EQ(place("g-1"), "");
}

/// g-1 died while no extender was there; nobody else has its tag.
TEST_F(RestoreTest, AReplacementGetsThePlaceOfTheMemberThatIsGone) {
  for (const char* name : {"a", "b", "c", "d"}) node(name);
  start();
  const GangSpec spec = gang("g", 3);
  members(spec, 0, 3, 8);
  for (const char* uid : {"g-0", "g-1", "g-2"}) run(uid);
  const std::string vacated = pods_.at("g-1").node;
  pods_.erase("g-1");
  member(spec, "g-new", 8);
  restart();
  gangs_->tick();
  EXPECT_EQ(place("g-new"), vacated);
}

/// The node of g-1 is refused by others until it is set aside; g-2, bound after that, tells the later plan.
TEST_F(RestoreTest, TheLaterPlanCounts) {
  for (const char* name : {"a", "b", "c", "d", "e"}) node(name);
  start();
  members(gang("g", 4), 0, 4, 8);
  run("g-0");
  const std::string before = where("g-1");
  while (where("g-1") == before) {
  }
  const std::string after = place("g-1");
  ASSERT_NE(after, before);
  run("g-2");
  const std::string last = place("g-3");
  restart();
  EXPECT_EQ(place("g-1"), after);
  EXPECT_EQ(place("g-3"), last);
  EXPECT_EQ(record("g").revision, 2U);
}

TEST_F(RestoreTest, AConfigMapIsTakenAwayWhenALaterPlanIsInUseOrItsGangIsGone) {
  for (int i = 0; i < 24; ++i) node("n" + std::to_string(i));
  start();
  const GangSpec spec = gang("g", 18);
  members(spec, 0, 18, 8);
  run("g-0");
  const PlanMapName first = maps_.begin()->first;
  EXPECT_FALSE(gangs_->next_discarded());
  const std::string before = where("g-1");
  while (where("g-1") == before) {
  }
  EXPECT_FALSE(gangs_->next_discarded());  // nobody is bound by the second yet
  run("g-2");
  EXPECT_EQ(gangs_->next_discarded(), first);
  ASSERT_EQ(maps_.size(), 2U);
  maps_.erase(first);
  const PlanMapName second = maps_.begin()->first;
  restart();  // it is remembered
  for (int i = 0; i < 18; ++i) end("g-" + std::to_string(i));
  EXPECT_EQ(gangs_->next_discarded(), second);
  EXPECT_FALSE(gangs_->next_discarded());
}

TEST_F(RestoreTest, TheGroupObjectOwnsTheConfigMapElseThePods) {
  for (int i = 0; i < 18; ++i) node("n" + std::to_string(i));
  start();
  GangSpec spec = gang("g", 17);
  members(spec, 0, 17, 8);
  where("g-0");
  ASSERT_EQ(gangs_->start_bind("g-0", place("g-0")), "");
  GangSlotNote slot = gangs_->slot_of("g-0");
  ASSERT_NE(slot.map, nullptr);
  EXPECT_EQ(slot.map->owners.size(), 17U);
  EXPECT_EQ(slot.map->owners.front(), (kube::OwnerReference{"v1", "Pod", "g-0", "g-0"}));
  EXPECT_EQ(slot.map->name, (PlanMapName{"default", "mortise-gang-" + slot.plan}));
  start();
  spec.object = {"batch/v1", "Job", "train", "u-job"};
  gangs_->respecify(spec);
  where("g-0");
  slot = gangs_->slot_of("g-0");
  ASSERT_NE(slot.map, nullptr);
  EXPECT_EQ(slot.map->owners, std::vector<kube::OwnerReference>{spec.object});
}

/// The node moved to another rack while no extender was there: the gang is in one rack or not at all.
TEST_F(RestoreTest, APlaceOutsideTheRequiredDomainIsNotTakenAgain) {
  node("a", "r1");
  node("b", "r1");
  node("c", "r1");
  start();
  members(gang("g", 2, "rack"), 0, 2, 8);
  const std::string there = run("g-0");
  const std::string other = place("g-1");
  for (auto& [name, rack] : nodes_) {
    if (name == other) rack = "r2";
  }
  restart();
  EXPECT_EQ(place("g-1"), "");
  const std::string anew = run("g-1");
  EXPECT_NE(anew, other);
  EXPECT_NE(anew, there);
  EXPECT_TRUE(cluster_->find_node(anew));
}

TEST_F(RestoreTest, WithoutPlansToKeepBindingsSayNothing) {
  node("a");
  start();
  gangs_ = std::make_unique<Gangs>(*bookings_, *cluster_, *domains_, *policy_, 1, clock_);
  members(gang("g", 1), 0, 1, 8);
  run("g-0");
  EXPECT_EQ(pods_.at("g-0").slot, "");
}

}  // namespace
}  // namespace mortise::extender
