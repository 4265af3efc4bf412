// From the objects of an API server and the bytes of a request to the answer: what has gone wrong with extenders in the
// field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

using nlohmann::json;
using testing::HasSubstr;

const std::string kAssigned = "mortise.dev/assigned-devices";

/// Keeps what it is told to bind, and answers as it is told to.
class ScriptedBinder final : public Binder {
 public:
  BindResult bind(const kube::Binding& binding) override {
    sent.push_back(binding);
    return result;
  }
  std::vector<kube::Binding> sent;
  BindResult result{BindResult::State::kBound, ""};
};

/// The extender of a live cluster without its API server.
struct LiveExtender {
  ManualClock clock;
  placement::TypicalPods typical;
  placement::ClusterState cluster;
  Bookings bookings{cluster};
  topology::LazyCatalogue catalogue{""};
  StateFeed feed{cluster, bookings, catalogue, 1};
  placement::Engine engine{cluster, *placement::make_policy("first-fit", typical), 1};
  placement::FragmentationMeter meter{cluster, typical};
  Handlers handlers{engine, bookings, clock, 120 * kSecond, [this](std::string_view uid) { return feed.waiting(uid); }};
  Metrics metrics;
  ScriptedBinder binder;
  Service service{handlers, cluster, meter, metrics, clock, &binder};

  void node(const json& object) {
    const Result<kube::Node> read = kube::decode_node(object);
    ASSERT_TRUE(read.ok()) << read.message();
    feed.upsert_node(*read);
  }
  void pod(const json& object) {
    const Result<kube::Pod> read = kube::decode_pod(object);
    ASSERT_TRUE(read.ok()) << read.message();
    feed.upsert_pod(*read);
  }
  json filter(const json& the_pod, const std::vector<std::string>& names) {
    return json::parse(service.filter(json{{"Pod", the_pod}, {"NodeNames", names}}.dump()).body);
  }
  std::string bind(const json& the_pod, const std::string& node) {
    const json& metadata = the_pod["metadata"];
    const json args = {
        {"PodName", metadata["name"]}, {"PodNamespace", "ml"}, {"PodUID", metadata["uid"]}, {"Node", node}};
    return json::parse(service.bind(args.dump()).body)["Error"];
  }
  MilliGpu used() const { return cluster.totals().gpu_used; }
  void check() const { EXPECT_TRUE(cluster.check().ok()) << cluster.check().message(); }
};

json node_with(const std::string& name, const json& resources) {
  json amounts = {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}};
  amounts.update(resources);
  return {{"metadata", {{"name", name}, {"uid", "node-" + name}}},
          {"status", {{"allocatable", amounts}, {"capacity", amounts}}}};
}

json gpu_node(const std::string& name, int gpus) {
  return node_with(name, {{"nvidia.com/gpu", std::to_string(gpus)}});
}

json container(const std::string& name, const json& limits) {
  return {{"name", name}, {"resources", {{"limits", limits}}}};
}

json pod_of(const std::string& uid, const std::vector<json>& containers) {
  return {{"metadata", {{"namespace", "ml"}, {"name", "pod-" + uid}, {"uid", uid}}},
          {"spec", {{"containers", containers}}}};
}

json gpu_pod(const std::string& uid, int gpus) {
  return pod_of(uid, {container("main", {{"nvidia.com/gpu", std::to_string(gpus)}})});
}

json share_pod(const std::string& uid, int milli) {
  return pod_of(uid, {container("main", {{"mortise.dev/gpu-milli", std::to_string(milli)}})});
}

json bound(json the_pod, const std::string& node, const std::string& devices = "") {
  the_pod["spec"]["nodeName"] = node;
  the_pod["status"]["phase"] = "Running";
  if (!devices.empty()) the_pod["metadata"]["annotations"][kAssigned] = devices;
  return the_pod;
}

TEST(LiveService, TheBindingNamesTheDevicesOfEachContainer) {
  LiveExtender live;
  live.node(gpu_node("a", 2));
  live.node(gpu_node("b", 3));
  const json two =
      pod_of("u1", {container("one", {{"nvidia.com/gpu", "1"}}), container("two", {{"nvidia.com/gpu", "2"}})});
  EXPECT_EQ(live.filter(two, {"a", "b"})["NodeNames"], json({"b"}));
  EXPECT_EQ(live.bind(two, "b"), "");
  ASSERT_EQ(live.binder.sent.size(), 1U);
  EXPECT_EQ(json::parse(live.binder.sent[0].annotations.at(kAssigned)),
            json::parse(R"({"one":["0"],"two":["1","2"]})"));
  EXPECT_EQ(live.binder.sent[0].uid, "u1");
}

TEST(LiveService, APodOfZeroGpusIsBoundWithoutDevices) {
  LiveExtender live;
  live.node(gpu_node("a", 1));
  live.node(node_with("plain", json::object()));
  EXPECT_EQ(live.filter(gpu_pod("u1", 0), {"a", "plain"})["NodeNames"], json({"a", "plain"}));
  EXPECT_EQ(live.bind(gpu_pod("u1", 0), "plain"), "");
  EXPECT_FALSE(live.binder.sent.at(0).annotations.contains(kAssigned));
  EXPECT_EQ(live.used(), 0);
}

// Two halves of one GPU are all of it, so nothing is left for a third pod: before and after a restart, and when an
// event comes twice.
TEST(LiveService, ARestartAndARepeatedEventNeitherLoseNorDoubleWhatIsHeld) {
  const std::vector<json> objects = {bound(share_pod("u1", 500), "a", R"({"main":["0"]})"),
                                     bound(share_pod("u2", 500), "a", R"({"main":["0"]})")};
  for (const bool repeated : {false, true}) {
    LiveExtender live;
    live.node(gpu_node("a", 1));
    for (int times = 0; times < (repeated ? 2 : 1); ++times) {
      for (const json& object : objects) live.pod(object);
    }
    EXPECT_EQ(live.used(), 1000);
    EXPECT_EQ(live.filter(share_pod("u3", 100), {"a"})["NodeNames"], json::array());
    live.feed.delete_pod("u1");
    EXPECT_EQ(live.used(), 500);
    EXPECT_EQ(live.filter(share_pod("u3", 500), {"a"})["NodeNames"], json({"a"}));
    live.check();
  }
}

// What such a pod holds is not known, but how much is: two of four GPUs, on its own node only.
TEST(LiveService, AMalformedAnnotationOfDevicesCostsWhatThePodAsksFor) {
  for (const char* text : {"GPU-0:BROKEN", "{", "[]", "7", R"({"main":["9","10"]})", R"({"main":["-1","0"]})",
                           R"({"main":["0","0"]})", R"({"main":[0,1]})", R"({"main":["0"]})", R"({"main":null})"}) {
    LiveExtender live;
    live.node(gpu_node("a", 4));
    live.node(gpu_node("b", 4));
    live.pod(bound(gpu_pod("u1", 2), "a", text));
    EXPECT_EQ(live.used(), 2000) << text;
    const json answer = live.filter(gpu_pod("u2", 3), {"a", "b"});
    EXPECT_EQ(answer["NodeNames"], json({"b"})) << text;
    EXPECT_THAT(answer["FailedNodes"]["a"], HasSubstr("InsufficientGpu")) << text;
    live.bookings.drop_reservation("u2");
    live.pod(bound(gpu_pod("u1", 2), "a", R"({"main":["2","3"]})"));
    live.pod(bound(gpu_pod("u3", 2), "a", R"({"main":["0","1"]})"));  // exactly the others
    EXPECT_EQ(live.used(), 4000) << text;
    live.feed.delete_pod("u1");
    live.feed.delete_pod("u3");
    EXPECT_EQ(live.used(), 0) << text;
    live.check();
  }
}

TEST(LiveService, ANodeWithoutAnyGpuIsNeverCounted) {
  LiveExtender live;
  live.node(gpu_node("zero", 0));
  live.node(node_with("none", json::object()));
  live.node(gpu_node("gpu", 1));
  const json answer = live.filter(gpu_pod("u1", 1), {"zero", "none", "gpu"});
  EXPECT_EQ(answer["NodeNames"], json({"gpu"}));
  EXPECT_THAT(answer["FailedAndUnresolvableNodes"]["zero"], HasSubstr("NoGpu"));
  EXPECT_THAT(answer["FailedAndUnresolvableNodes"]["none"], HasSubstr("NoGpu"));
  const json question = {{"Pod", gpu_pod("u1", 1)}, {"NodeNames", {"zero", "none", "gpu"}}};
  EXPECT_EQ(live.service.prioritize(question.dump()).body,
            R"([{"Host":"zero","Score":0},{"Host":"none","Score":0},{"Host":"gpu","Score":10}])");
}

// 8 of 8 GPUs are held when two are lost: none is free, not two less than none. One pod of 4 later, 2 of 6 are.
TEST(LiveService, MoreHeldThanAllocatableLeavesNothingFreeUntilPodsGo) {
  LiveExtender live;
  live.node(gpu_node("a", 8));
  live.pod(bound(gpu_pod("u1", 4), "a"));
  live.pod(bound(gpu_pod("u2", 4), "a"));
  json sick = gpu_node("a", 8);
  sick["status"]["allocatable"]["nvidia.com/gpu"] = "6";
  live.node(sick);
  EXPECT_EQ(live.used(), 8000);
  EXPECT_THAT(live.filter(gpu_pod("u3", 1), {"a"})["FailedNodes"]["a"], HasSubstr("InsufficientGpu"));
  live.feed.delete_pod("u1");
  EXPECT_EQ(live.filter(gpu_pod("u3", 3), {"a"})["NodeNames"], json::array());
  EXPECT_EQ(live.filter(gpu_pod("u3", 2), {"a"})["NodeNames"], json({"a"}));
  live.node(gpu_node("a", 8));
  EXPECT_EQ(live.filter(gpu_pod("u3", 4), {"a"})["NodeNames"], json({"a"}));
  live.check();
}

TEST(LiveService, ANodeThatIsMadeAnewHasItsOwnGpusAndNoPlacesOfTheOldOne) {
  LiveExtender live;
  live.node(gpu_node("a", 8));
  live.pod(bound(gpu_pod("u1", 2), "a"));
  EXPECT_EQ(live.filter(gpu_pod("u2", 6), {"a", "x"})["NodeNames"], json({"a"}));  // reserved
  live.feed.delete_node("a");
  live.feed.delete_pod("u1");
  json smaller = gpu_node("a", 4);
  smaller["metadata"]["uid"] = "another";
  live.node(smaller);
  EXPECT_EQ(live.cluster.totals().gpus, 4);
  EXPECT_EQ(live.used(), 0);
  EXPECT_EQ(live.filter(gpu_pod("u3", 4), {"a"})["NodeNames"], json({"a"}));
  EXPECT_THAT(live.filter(gpu_pod("u4", 8), {"a"})["FailedAndUnresolvableNodes"]["a"], HasSubstr("TooFewGpus"));
  EXPECT_THAT(live.bind(gpu_pod("u2", 6), "a"), HasSubstr("does not fit on node a: TooFewGpus"));
  live.check();
}

TEST(LiveService, ACordonedNodeTakesNoPods) {
  LiveExtender live;
  json closed = gpu_node("a", 8);
  closed["spec"]["unschedulable"] = true;
  live.node(closed);
  EXPECT_THAT(live.filter(gpu_pod("u1", 1), {"a"})["FailedAndUnresolvableNodes"]["a"], HasSubstr("Cordoned"));
}

// u1 was deleted, and u2 made under its name, between filter and bind.
TEST(LiveService, ABindOfAPodThatIsGoneIsAnErrorAndBlocksNobody) {
  LiveExtender live;
  live.node(gpu_node("a", 1));
  EXPECT_EQ(live.filter(gpu_pod("u1", 1), {"a", "x"})["NodeNames"], json({"a"}));
  json next = gpu_pod("u2", 1);
  next["metadata"]["name"] = "pod-u1";
  live.binder.result = {BindResult::State::kNotBound, "the pod was replaced by one with UID u2"};
  EXPECT_EQ(live.bind(gpu_pod("u1", 1), "a"), "the pod was replaced by one with UID u2");
  EXPECT_EQ(live.used(), 0);
  EXPECT_EQ(live.filter(next, {"a", "x"})["NodeNames"], json({"a"}));
  live.binder.result = {BindResult::State::kBound, ""};
  EXPECT_EQ(live.bind(next, "a"), "");
  live.feed.delete_pod("u1");  // told late, and of the old pod
  EXPECT_EQ(live.used(), 1000);
}

// Two whole GPUs beside two that are cut into 7 slices each.
TEST(LiveService, MigSlicesNeverStandForWholeGpus) {
  LiveExtender live;
  live.node(node_with("mixed", {{"nvidia.com/gpu", "2"}, {"nvidia.com/mig-1g.5gb", "14"}}));
  live.node(node_with("slices", {{"nvidia.com/mig-1g.5gb", "14"}}));
  const json answer = live.filter(gpu_pod("u1", 3), {"mixed", "slices"});
  EXPECT_EQ(answer["NodeNames"], json::array());
  EXPECT_THAT(answer["FailedAndUnresolvableNodes"]["mixed"], HasSubstr("TooFewGpus"));
  EXPECT_THAT(answer["FailedAndUnresolvableNodes"]["slices"], HasSubstr("NoGpu"));
  EXPECT_EQ(live.filter(gpu_pod("u2", 2), {"mixed", "slices"})["NodeNames"], json({"mixed"}));
  EXPECT_EQ(live.bind(gpu_pod("u2", 2), "mixed"), "");
  EXPECT_EQ(live.binder.sent[0].annotations.at(kAssigned), R"({"main":["0","1"]})");
  // Nor does a pod that asks for slices take a whole one.
  const json slice = pod_of("u3", {container("main", {{"nvidia.com/mig-1g.5gb", "7"}})});
  EXPECT_EQ(live.filter(slice, {"mixed", "slices"})["NodeNames"], json({"mixed", "slices"}));
  live.pod(bound(slice, "slices"));
  EXPECT_EQ(live.used(), 2000);
}

}  // namespace
}  // namespace mortise::extender
