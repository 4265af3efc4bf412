// From the Bindings of one extender to the places that the next one takes again, without an API server between them.
#include "scheduler/extender/gang_recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/extender/handlers.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/service.h"
#include "scheduler/extender/state_feed.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {
namespace {

using kube::Outcome;
using nlohmann::json;
using testing::HasSubstr;

/// What the API server keeps of plans.
class MapStore final : public PlanStore {
 public:
  kube::Done write(const PlanMap& plan) override {
    ++writes;
    if (outcome == Outcome::kDone) maps[plan.name] = plan.text;
    return {outcome, "as told"};
  }
  kube::Answer<std::string> read(const PlanMapName& name) override {
    ++reads;
    if (outcome != Outcome::kDone) return {outcome, "as told"};
    const auto found = maps.find(name);
    if (found == maps.end()) return {Outcome::kNotFound, "not there"};
    return {Outcome::kDone, "", {}, found->second};
  }
  kube::Done remove(const PlanMapName& name) override {
    return {maps.erase(name) > 0 ? Outcome::kDone : Outcome::kNotFound, ""};
  }

  std::map<PlanMapName, std::string> maps;
  Outcome outcome = Outcome::kDone;
  int writes = 0;
  int reads = 0;
};

class ScriptedBinder final : public Binder {
 public:
  BindResult bind(const kube::Binding& binding) override {
    sent.push_back(binding);
    return {BindResult::State::kBound, ""};
  }
  std::vector<kube::Binding> sent;
};

struct Extender {
  explicit Extender(MapStore& plan_store) : store(plan_store) {
    feed.feed_gangs(gangs, gang_feed, domains);
    handlers.place_gangs(gangs, gang_feed);
    gangs.keep_plans();
    service.store_plans(writer);
    for (int i = 0; i < 4; ++i) {
      const json amounts = {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}, {"nvidia.com/gpu", "8"}};
      const std::string name = "n" + std::to_string(i);
      feed.upsert_node(*kube::decode_node({{"metadata", {{"name", name}, {"uid", "node-" + name}}},
                                           {"status", {{"allocatable", amounts}, {"capacity", amounts}}}}));
      nodes.push_back(name);
    }
  }

  /// As kube-scheduler does: asks, and binds to the node that passed. Returns the error, or why it has to wait.
  std::string run(const json& pod) {
    const json answer = json::parse(service.filter(json{{"Pod", pod}, {"NodeNames", nodes}}.dump()).body);
    if (answer["NodeNames"].empty()) return answer["FailedNodes"].dump();
    const json args = {{"PodName", pod["metadata"]["name"]},
                       {"PodNamespace", "ml"},
                       {"PodUID", pod["metadata"]["uid"]},
                       {"Node", answer["NodeNames"][0]}};
    return json::parse(service.bind(args.dump()).body)["Error"];
  }
  void see(const json& pod) { feed.upsert_pod(*kube::decode_pod(pod)); }
  /// The node that the pod has a place on, reserved or not.
  std::string node_of(const std::string& uid) const {
    const Booking* booking = bookings.find(uid);
    return booking == nullptr ? "" : booking->node;
  }

  MapStore& store;
  PlanWriter writer{store};
  ManualClock clock;
  placement::TypicalPods typical;
  placement::ClusterState cluster;
  Bookings bookings{cluster};
  topology::LazyCatalogue catalogue{""};
  placement::Domains domains{cluster};
  std::unique_ptr<placement::Policy> policy = *placement::make_policy("best-fit", typical);
  Gangs gangs{bookings, cluster, domains, *policy, 1, clock};
  GangFeed gang_feed{gangs};
  StateFeed feed{cluster, bookings, catalogue, 1};
  placement::Engine engine{cluster, *placement::make_policy("first-fit", typical), 1};
  placement::FragmentationMeter meter{cluster, typical};
  Handlers handlers{engine, bookings, clock, 120 * kSecond, [this](std::string_view uid) { return feed.waiting(uid); }};
  Metrics metrics;
  ScriptedBinder binder;
  Service service{handlers, cluster, meter, metrics, clock, &binder};
  std::vector<std::string> nodes;
  std::string why_not;
  GangRecovery recovery{gangs, gang_feed, service.mutex(), store, clock, [this] { return why_not; }};
};

std::vector<json> gang_of(int members) {
  std::vector<json> pods;
  for (int i = 0; i < members; ++i) {
    const std::string name = "train-" + std::to_string(i);
    json container = {{"name", "main"}, {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}};
    pods.push_back(
        {{"metadata",
          {{"namespace", "ml"},
           {"name", name},
           {"uid", "uid-" + std::to_string(i)},
           {"annotations",
            {{"mortise.dev/gang-name", "train"}, {"mortise.dev/gang-min-member", std::to_string(members)}}}}},
         {"spec", {{"containers", {container}}}},
         {"status", {{"phase", "Pending"}}}});
  }
  return pods;
}

/// The pods as the API server has them after these Bindings.
std::vector<json> after(std::vector<json> pods, const std::vector<kube::Binding>& bindings) {
  for (json& pod : pods) {
    for (const kube::Binding& binding : bindings) {
      if (binding.uid != pod["metadata"]["uid"]) continue;
      pod["spec"]["nodeName"] = binding.node;
      for (const auto& [key, value] : binding.annotations) pod["metadata"]["annotations"][key] = value;
    }
  }
  return pods;
}

TEST(GangRecovery, BindingsOfASmallGangTellItsWholePlan) {
  MapStore store;
  Extender first(store);
  const std::vector<json> pods = gang_of(3);
  for (const json& pod : pods) first.see(pod);
  EXPECT_EQ(first.run(pods[0]), "");
  const auto slot = parse_slot(first.binder.sent.at(0).annotations.at("mortise.dev/gang-slot"));
  ASSERT_TRUE(slot.ok()) << slot.message();
  EXPECT_EQ(slot->all->slots(), 3U);
  EXPECT_EQ(store.writes, 0);
  std::map<std::string, std::string> places;
  for (const char* uid : {"uid-1", "uid-2"}) places[uid] = first.node_of(uid);

  Extender second(store);
  for (const json& pod : after(pods, first.binder.sent)) second.see(pod);
  second.recovery.step();
  EXPECT_TRUE(second.recovery.done());
  for (const auto& [uid, node] : places) EXPECT_EQ(second.node_of(uid), node);
}

TEST(GangRecovery, ThePlanOfALargeGangIsStoredOnceBeforeItsFirstBinding) {
  MapStore store;
  Extender first(store);
  const std::vector<json> pods = gang_of(17);
  for (const json& pod : pods) first.see(pod);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(first.run(pods[static_cast<std::size_t>(i)]), "") << i;
  EXPECT_EQ(store.writes, 1);
  EXPECT_EQ(first.binder.sent.size(), 9U);

  Extender second(store);
  second.why_not = "another replica leads";
  for (const json& pod : after(pods, first.binder.sent)) second.see(pod);
  second.recovery.step();
  EXPECT_FALSE(second.recovery.done());
  EXPECT_EQ(store.reads, 0);
  second.why_not.clear();
  second.recovery.step();
  EXPECT_TRUE(second.recovery.done());
  EXPECT_EQ(store.reads, 1);
  for (int i = 9; i < 17; ++i) {
    const std::string uid = "uid-" + std::to_string(i);
    EXPECT_FALSE(second.node_of(uid).empty()) << uid;
    EXPECT_EQ(second.node_of(uid), first.node_of(uid)) << uid;
  }
  // Whoever leads again does not know what another one has reserved meanwhile.
  second.why_not = "another replica leads";
  second.recovery.step();
  EXPECT_FALSE(second.recovery.done());
}

TEST(GangRecovery, AMemberIsNotBoundWhenThePlanCannotBeStored) {
  MapStore store;
  Extender extender(store);
  const std::vector<json> pods = gang_of(17);
  for (const json& pod : pods) extender.see(pod);
  store.outcome = Outcome::kUnknown;
  EXPECT_THAT(extender.run(pods[0]), HasSubstr("the plan of its gang could not be stored: as told"));
  EXPECT_FALSE(extender.node_of("uid-0").empty());  // tried again soon, in the same place
  store.outcome = Outcome::kRefused;
  EXPECT_THAT(extender.run(pods[0]), HasSubstr("the plan of its gang could not be stored: as told"));
  EXPECT_TRUE(extender.node_of("uid-0").empty());
  EXPECT_TRUE(extender.binder.sent.empty());
  store.outcome = Outcome::kDone;
  EXPECT_EQ(extender.run(pods[0]), "");
  EXPECT_EQ(extender.binder.sent.size(), 1U);
}

TEST(GangRecovery, AnApiServerThatDoesNotAnswerIsAskedForTenSeconds) {
  MapStore store;
  Extender first(store);
  const std::vector<json> pods = gang_of(17);
  for (const json& pod : pods) first.see(pod);
  EXPECT_EQ(first.run(pods[0]), "");

  Extender second(store);
  for (const json& pod : after(pods, first.binder.sent)) second.see(pod);
  store.outcome = Outcome::kNotSent;
  second.recovery.step();
  second.clock.advance(9 * kSecond);
  second.recovery.step();
  EXPECT_FALSE(second.recovery.done());
  second.clock.advance(1 * kSecond);
  second.recovery.step();
  EXPECT_TRUE(second.recovery.done());
  const std::vector<RefusedSlot> refused = second.recovery.take_refused();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].pod, "ml/train-0");
  EXPECT_EQ(refused[0].why, "as told");
  EXPECT_EQ(second.node_of("uid-1"), "");
}

/// The others are asked about as if nothing had been planned, and go where the bound one lets them.
TEST(GangRecovery, AGangWhosePlanIsLostIsPlannedAnew) {
  MapStore store;
  Extender first(store);
  const std::vector<json> pods = gang_of(17);
  for (const json& pod : pods) first.see(pod);
  EXPECT_EQ(first.run(pods[0]), "");
  store.maps.clear();
  Extender second(store);
  for (const json& pod : after(pods, first.binder.sent)) second.see(pod);
  second.recovery.step();
  EXPECT_TRUE(second.recovery.done());
  EXPECT_EQ(second.recovery.take_refused().size(), 1U);
  for (int i = 1; i < 17; ++i) EXPECT_EQ(second.run(pods[static_cast<std::size_t>(i)]), "") << i;
  EXPECT_EQ(second.gangs.phase(second.gangs.gangs().begin()->second), GangPhase::kRunning);
}

}  // namespace
}  // namespace mortise::extender
