// The cluster state follows the API server's objects, whatever order they come in and whatever is in them.
#include "scheduler/extender/state_feed.h"

#include <gtest/gtest.h>

#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {
namespace {

kube::Node node(const std::string& name, int gpus, int capacity = -1) {
  kube::Node made;
  made.name = name;
  made.uid = "node-" + name;
  made.allocatable = {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}};
  made.capacity = made.allocatable;
  if (capacity >= 0) made.capacity["nvidia.com/gpu"] = std::to_string(capacity);
  return made;
}

kube::Pod pod(const std::string& uid, int gpus, const std::string& on = "") {
  kube::Pod made;
  made.ns = "default";
  made.name = "pod-" + uid;
  made.uid = uid;
  made.node_name = on;
  made.phase = on.empty() ? "Pending" : "Running";
  kube::Container container;
  container.name = "main";
  container.requests = {{"cpu", "2"}};
  if (gpus > 0) container.limits = {{"nvidia.com/gpu", std::to_string(gpus)}};
  made.containers.push_back(container);
  return made;
}

/// A bound pod of one GPU whose annotation says which.
kube::Pod told(const std::string& uid, const std::string& device, const std::string& on) {
  kube::Pod made = pod(uid, 1, on);
  made.annotations = {{"mortise.dev/assigned-devices", R"({"main":[")" + device + R"("]})"}};
  return made;
}

class StateFeedTest : public ::testing::Test {
 protected:
  const placement::NodeState& state(const std::string& name) { return cluster.state_of(*cluster.find_node(name)); }
  /// The devices that are not free.
  std::string taken(const std::string& name) {
    std::string text;
    for (int device = 0; device < state(name).devices; ++device) {
      if (state(name).free[static_cast<std::size_t>(device)] == 1000) continue;
      text += (text.empty() ? "" : " ") + std::to_string(device);
    }
    return text;
  }
  /// A pod that was told to go to node a, and is not bound.
  void reserve(const std::string& uid, const std::vector<int>& devices, Nanoseconds expires) {
    placement::DeviceSet set;
    for (const int device : devices) set.insert(device);
    const placement::PodRequest request = *kube::pod_request(pod(uid, set.size()));
    const placement::Placed placed{*cluster.find_node("a"), set, 0};
    ASSERT_TRUE(bookings.reserve(request, placed, expires, placement::Knowledge::kPredicted).ok());
  }
  int free(const std::string& name) { return state(name).whole_free(); }
  void check() { EXPECT_TRUE(cluster.check().ok()) << cluster.check().message(); }

  placement::ClusterState cluster;
  Bookings bookings{cluster};
  topology::LazyCatalogue catalogue{""};
  StateFeed feed{cluster, bookings, catalogue, 1};
};

// `date -u -d 2025-01-31T23:59:59Z +%s`
TEST_F(StateFeedTest, BoundPodsKeepTheirPriorityAndStart) {
  feed.replace_nodes({node("a", 8)});
  kube::Pod running = pod("u1", 4, "a");
  running.priority = 7;
  feed.replace_pods({running});
  EXPECT_EQ(bookings.find("u1")->request.priority, 7);
  EXPECT_EQ(bookings.find("u1")->started, std::nullopt);
  running.start_time = "2025-01-31T23:59:59Z";
  feed.upsert_pod(running);
  EXPECT_EQ(bookings.find("u1")->started, 1738367999 * kSecond);
  running.start_time = "soon";
  feed.upsert_pod(running);
  EXPECT_EQ(bookings.find("u1")->started, 1738367999 * kSecond);
  EXPECT_EQ(feed.notes().size(), 1U);
}

TEST_F(StateFeedTest, BoundPodsHoldUntilTheyEndAndNotOnlyUntilTheyAreBeingDeleted) {
  feed.replace_nodes({node("a", 8)});
  kube::Pod running = pod("u1", 4, "a");
  feed.replace_pods({running});
  EXPECT_EQ(free("a"), 4);
  running.deleting = true;
  feed.upsert_pod(running);
  EXPECT_EQ(free("a"), 4);
  running.phase = "Succeeded";
  feed.upsert_pod(running);
  EXPECT_EQ(free("a"), 8);
  feed.delete_pod("u1");  // comes later, and changes nothing
  EXPECT_EQ(free("a"), 8);
  check();
}

// kube-scheduler marks whom it preempts before it deletes them; users, drains and controllers do not.
TEST_F(StateFeedTest, OnlyWhoKubeSchedulerPreemptsTakesTheRestOfItsGangAlong) {
  const ManualClock clock;
  Evictions evictions(bookings, clock);
  feed.feed_evictions(evictions);
  feed.replace_nodes({node("a", 8)});
  kube::Pod first = pod("u1", 4, "a");
  feed.replace_pods({first, pod("u2", 4, "a")});
  evictions.expect("key", "ml/high", {"u1"}, {"u2"});
  first.deleting = true;
  feed.upsert_pod(first);
  EXPECT_FALSE(evictions.next());
  first.preempted = true;
  feed.upsert_pod(first);
  const auto order = evictions.next();
  ASSERT_TRUE(order);
  EXPECT_EQ(order->uid, "u2");
}

TEST_F(StateFeedTest, APodOfTheSameNameWithANewUidIsAnotherPod) {
  feed.replace_nodes({node("a", 8)});
  feed.upsert_pod(pod("u1", 4, "a"));
  kube::Pod again = pod("u2", 2, "a");
  again.name = "pod-u1";
  feed.delete_pod("u1");
  feed.upsert_pod(again);
  EXPECT_EQ(free("a"), 6);
  feed.delete_pod("u1");  // the old one's deletion, told again
  EXPECT_EQ(free("a"), 6);
}

// A list of tens of thousands would hold up filter and bind for half a second. 3 x kSlice pods in it, as many that have
// gone: at least six pauses, in each of which the books add up, and a place may be taken that no later part of the list
// touches.
TEST_F(StateFeedTest, ALongListIsTakenOverInSlicesBetweenWhichPlacesCanBeTaken) {
  constexpr int kPods = 3 * static_cast<int>(StateFeed::kSlice);
  feed.replace_nodes({node("a", 8), node("b", 128), node("c", 128)});
  std::vector<kube::Pod> before;
  std::vector<kube::Pod> after;
  for (int i = 0; i < kPods; ++i) {
    const char* on = i % 2 == 0 ? "b" : "c";
    before.push_back(pod("old" + std::to_string(i), 1, on));
    after.push_back(pod("new" + std::to_string(i), 1, on));
  }
  feed.replace_pods(before);
  feed.pods_list_starts();
  int pauses = 0;
  feed.replace_pods(after, [&] {
    check();
    if (++pauses == 1) reserve("u", {0, 1}, 1000);
    EXPECT_EQ(taken("a"), "0 1");
  });
  EXPECT_GE(pauses, 6);
  EXPECT_EQ(taken("a"), "0 1");
  EXPECT_EQ(bookings.bound_uids().size(), static_cast<std::size_t>(kPods));
  EXPECT_EQ(free("b") + free("c"), 2 * 128 - kPods);
  check();
}

TEST_F(StateFeedTest, WhatAListDoesNotHoldAnyMoreIsReleased) {
  feed.replace_nodes({node("a", 8), node("b", 8)});
  feed.replace_pods({pod("u1", 4, "a"), pod("u2", 2, "a")});
  feed.replace_pods({pod("u2", 2, "a")});
  EXPECT_EQ(free("a"), 6);
  feed.replace_nodes({node("a", 8)});
  EXPECT_FALSE(cluster.find_node("b").has_value());
  check();
}

TEST_F(StateFeedTest, APodThatIsBoundWhileAListIsOnItsWayIsNotReleasedByIt) {
  feed.replace_nodes({node("a", 8)});
  feed.replace_pods({pod("u1", 4, "a"), pod("u2", 1, "a")});
  feed.pods_list_starts();
  bookings.bound(*kube::pod_request(pod("u3", 2)), "a", {});  // as the answer to its Binding says
  feed.replace_pods({pod("u2", 1, "a")});
  EXPECT_EQ(free("a"), 5);
  feed.pods_list_starts();  // now it would be in the list
  feed.replace_pods({pod("u2", 1, "a")});
  EXPECT_EQ(free("a"), 7);
  check();
}

TEST_F(StateFeedTest, PodsMayComeBeforeTheirNode) {
  feed.replace_pods({pod("u1", 4, "a")});
  feed.upsert_node(node("a", 8));
  EXPECT_EQ(free("a"), 4);
  EXPECT_EQ(state("a").cpu_free, 62'000);
}

TEST_F(StateFeedTest, PodsThatComeBeforeTheirNodeHaveTheDevicesTheyWereToldToTake) {
  // By UID the one that does not say would be first, and take device 0.
  feed.replace_pods({pod("u1", 1, "a"), told("u2", "0", "a"), told("u3", "3", "a")});
  feed.upsert_node(node("a", 4));
  EXPECT_EQ(taken("a"), "0 1 3");
  feed.delete_pod("u3");
  EXPECT_EQ(taken("a"), "0 1");
  check();
}

TEST_F(StateFeedTest, OfAListThosePodsComeFirstWhoseDevicesAreKnown) {
  feed.replace_nodes({node("a", 4)});
  feed.replace_pods({pod("u1", 1, "a"), told("u2", "0", "a")});
  EXPECT_EQ(taken("a"), "0 1");
  feed.delete_pod("u1");
  EXPECT_EQ(taken("a"), "0");
}

TEST_F(StateFeedTest, ANodeThatComesBackFindsThePodsWithTheirDevices) {
  feed.replace_nodes({node("a", 4)});
  feed.replace_pods({told("u1", "2", "a")});
  placement::DeviceSet last;
  last.insert(3);
  const placement::PodRequest ours = *kube::pod_request(pod("u2", 1));
  ASSERT_TRUE(bookings.reserve(ours, {*cluster.find_node("a"), last, 0}, 60, placement::Knowledge::kExact).ok());
  bookings.bound(ours, "a", {});  // as the answer to its Binding says, before the pod is seen
  feed.delete_node("a");
  feed.upsert_node(node("a", 4));
  EXPECT_EQ(taken("a"), "2 3");
  check();
}

TEST_F(StateFeedTest, ANodeThatComesBackHasItsPodsAgain) {
  feed.replace_nodes({node("a", 8)});
  feed.replace_pods({pod("u1", 4, "a"), pod("u2", 1, "a")});
  feed.delete_node("a");
  EXPECT_EQ(cluster.totals().pods, 0);
  feed.upsert_node(node("a", 8));
  EXPECT_EQ(free("a"), 3);
  feed.delete_pod("u1");
  EXPECT_EQ(free("a"), 7);
  check();
}

TEST_F(StateFeedTest, WrongAnnotationsBlockNoMoreThanThePodAskedForAndHeal) {
  feed.replace_nodes({node("a", 8)});
  kube::Pod odd = pod("u1", 2, "a");
  odd.annotations["mortise.dev/topology-policy"] = "sideways";
  odd.annotations["mortise.dev/assigned-devices"] = "{\"main\":[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\"]}";
  feed.upsert_pod(odd);
  EXPECT_EQ(free("a"), 6);
  EXPECT_EQ(feed.notes().size(), 2U);
  odd.annotations = {{"mortise.dev/assigned-devices", "{\"main\":[\"6\",\"7\"]}"}};
  feed.upsert_pod(odd);
  EXPECT_EQ(free("a"), 6);
  feed.delete_pod("u1");
  EXPECT_EQ(free("a"), 8);
}

TEST_F(StateFeedTest, MoreThanANodeHasIsInTheBooksAndMendsItself) {
  feed.replace_nodes({node("a", 4)});
  feed.replace_pods({pod("u1", 3, "a"), pod("u2", 3, "a")});  // somebody else bound the second
  EXPECT_EQ(free("a"), 0);
  EXPECT_EQ(cluster.totals().gpu_used, 4000);
  feed.delete_pod("u1");
  EXPECT_EQ(free("a"), 1);  // the second holds its three now
  check();
}

TEST_F(StateFeedTest, GpusThatAreNotAllocatableAreLost) {
  feed.upsert_node(node("a", 8));
  feed.upsert_pod(pod("u1", 2, "a"));
  feed.upsert_node(node("a", 7, 8));
  EXPECT_EQ(cluster.totals().gpus, 7);
  EXPECT_EQ(cluster.totals().whole_free_gpus, 5);
  feed.upsert_node(node("a", 0, 8));  // the driver restarts
  EXPECT_EQ(cluster.totals().gpu_used, 2000);
  EXPECT_EQ(cluster.totals().whole_free_gpus, 0);
  feed.upsert_node(node("a", 8));
  EXPECT_EQ(cluster.totals().whole_free_gpus, 6);
  check();
}

TEST_F(StateFeedTest, ANodeThatCannotBeReadTakesNothingAndKeepsItsPods) {
  feed.upsert_node(node("a", 8));
  feed.upsert_pod(pod("u1", 2, "a"));
  kube::Node odd = node("a", 8);
  odd.allocatable["cpu"] = "many";
  feed.upsert_node(odd);
  EXPECT_TRUE(cluster.machine_of(*cluster.find_node("a")).blocked);
  EXPECT_EQ(cluster.totals().gpu_used, 2000);
  feed.upsert_node(node("a", 8));
  EXPECT_EQ(free("a"), 6);
  check();
}

TEST_F(StateFeedTest, AReservedPlaceBecomesThePodsWhenItIsBoundThere) {
  feed.replace_nodes({node("a", 8), node("b", 8)});
  placement::Engine engine(cluster, *placement::make_policy("first-fit", placement::TypicalPods()), 1);
  const placement::PodRequest request = *kube::pod_request(pod("u1", 2));
  const auto placed = std::get<placement::Placed>(engine.plan(request));
  const std::string chosen = cluster.node_name(placed.node);
  const std::string other = chosen == "a" ? "b" : "a";
  ASSERT_TRUE(bookings.reserve(request, placed, 60, placement::Knowledge::kPredicted).ok());
  EXPECT_EQ(free(chosen), 6);
  feed.upsert_pod(pod("u1", 2, chosen));
  EXPECT_EQ(bookings.reserved(), 0U);
  bookings.drop_expired(100);
  EXPECT_EQ(free(chosen), 6);
  feed.upsert_pod(pod("u1", 2, other));  // the API server has the last word
  EXPECT_EQ(free(chosen), 8);
  EXPECT_EQ(free(other), 6);
  check();
}

TEST_F(StateFeedTest, ReservationsExpireAndAreReplaced) {
  feed.replace_nodes({node("a", 8)});
  const NodeId a = *cluster.find_node("a");
  placement::DeviceSet first;
  first.insert(0);
  const placement::PodRequest request = *kube::pod_request(pod("u1", 1));
  ASSERT_TRUE(bookings.reserve(request, {a, first, 0}, 60, placement::Knowledge::kExact).ok());
  ASSERT_TRUE(bookings.reserve(request, {a, first, 0}, 90, placement::Knowledge::kExact).ok());
  EXPECT_EQ(free("a"), 7);
  bookings.drop_expired(89);
  EXPECT_EQ(free("a"), 7);
  bookings.drop_expired(90);
  EXPECT_EQ(free("a"), 8);
}

TEST_F(StateFeedTest, ABindingOnItsWayDoesNotExpire) {
  feed.replace_nodes({node("a", 8)});
  placement::DeviceSet first;
  first.insert(0);
  const placement::PodRequest request = *kube::pod_request(pod("u1", 1));
  ASSERT_TRUE(bookings.reserve(request, {*cluster.find_node("a"), first, 0}, 60, placement::Knowledge::kExact).ok());
  ASSERT_TRUE(bookings.start_binding("u1"));
  EXPECT_FALSE(bookings.start_binding("u1"));
  bookings.drop_expired(1000);
  EXPECT_EQ(free("a"), 7);
  EXPECT_FALSE(bookings.reserve(request, {*cluster.find_node("a"), first, 0}, 60, placement::Knowledge::kExact).ok());
  bookings.binding_failed("u1");
  EXPECT_EQ(free("a"), 8);
}

TEST_F(StateFeedTest, PlacesThatAreOnlyReservedMakeWayForAPodThatIsBoundTheLastFirst) {
  feed.replace_nodes({node("a", 4)});
  reserve("u1", {0, 1}, 60);
  reserve("u2", {2, 3}, 90);
  feed.upsert_pod(pod("u3", 1, "a"));  // somebody else bound it
  EXPECT_EQ(taken("a"), "0 1 2");
  EXPECT_NE(bookings.find("u1"), nullptr);
  EXPECT_EQ(bookings.find("u2"), nullptr);
  EXPECT_FALSE(bookings.find("u3")->is_short(cluster));
  check();
}

TEST_F(StateFeedTest, APodThatWasToldToTakeReservedDevicesHasThem) {
  feed.replace_nodes({node("a", 4)});
  reserve("u1", {0}, 60);
  reserve("u2", {1}, 60);
  feed.upsert_pod(told("u3", "1", "a"));  // another replica chose the same
  EXPECT_EQ(taken("a"), "0 1");
  EXPECT_NE(bookings.find("u1"), nullptr);
  EXPECT_EQ(bookings.find("u2"), nullptr);
  check();
}

TEST_F(StateFeedTest, ABindingOnItsWayDoesNotMakeWay) {
  feed.replace_nodes({node("a", 1)});
  reserve("u1", {0}, 60);
  ASSERT_TRUE(bookings.start_binding("u1"));
  feed.upsert_pod(pod("u2", 1, "a"));
  EXPECT_FALSE(bookings.find("u1")->is_short(cluster));
  EXPECT_TRUE(bookings.find("u2")->is_short(cluster));
  bookings.binding_failed("u1");
  EXPECT_FALSE(bookings.find("u2")->is_short(cluster));
  check();
}

TEST_F(StateFeedTest, WhatIsReservedOnANodeThatLeavesIsDropped) {
  feed.replace_nodes({node("a", 4)});
  reserve("u1", {0, 1, 2, 3}, 60);
  feed.delete_node("a");
  EXPECT_EQ(bookings.find("u1"), nullptr);
  EXPECT_EQ(bookings.reserved(), 0U);
  feed.upsert_node(node("a", 2));
  EXPECT_EQ(taken("a"), "");
  check();
}

TEST_F(StateFeedTest, WhatCannotBeReadInAListStaysAsItWas) {
  feed.replace_nodes({node("a", 4), node("b", 4)});
  feed.replace_pods({pod("u1", 2, "a"), pod("u2", 1, "a")});
  feed.nodes_list_starts();
  feed.bad_node("a", "odd");
  feed.replace_nodes({});
  EXPECT_FALSE(cluster.find_node("b").has_value());
  feed.pods_list_starts();
  feed.bad_pod("u1", "default/pod-u1", "odd");
  feed.replace_pods({});
  EXPECT_EQ(taken("a"), "0 1");
  feed.pods_list_starts();  // now it is not even listed
  feed.replace_pods({});
  EXPECT_EQ(taken("a"), "");
  check();
}

TEST_F(StateFeedTest, APodThatIsResizedInPlaceHoldsWhatItAsksForNow) {
  feed.replace_nodes({node("a", 8)});
  kube::Pod running = told("u1", "5", "a");
  feed.replace_pods({running});
  EXPECT_EQ(state("a").cpu_free, 62'000);
  running.containers[0].requests["cpu"] = "10";
  feed.upsert_pod(running);
  EXPECT_EQ(state("a").cpu_free, 54'000);
  EXPECT_EQ(taken("a"), "5");
  check();
}

TEST_F(StateFeedTest, PodsThatAskForMoreThanAnyNodeHasLeaveItOverbooked) {
  feed.replace_nodes({node("a", 8)});
  kube::Pod greedy = pod("u1", 0, "a");
  greedy.containers[0].requests = {{"cpu", "9223372036854775807"}, {"memory", "9223372036854775807"}};
  for (int i = 0; i < 1000; ++i) {
    greedy.uid = "u" + std::to_string(i);
    feed.upsert_pod(greedy);
    ASSERT_LT(state("a").cpu_free, 0);
    ASSERT_LT(state("a").memory_free, 0);
  }
  feed.replace_pods({});
  EXPECT_EQ(state("a").cpu_free, 64'000);
  check();
}

TEST_F(StateFeedTest, AReportOfTheNodesInsideIsUsedWhenItComes) {
  feed.upsert_node(node("a", 4));
  const placement::Machine& before = cluster.machine_of(*cluster.find_node("a"));
  EXPECT_EQ(cluster.topology_of(before), nullptr);
  const auto report = topology::read_node_topologies(R"({"apiVersion":"topology.node.k8s.io/v1alpha2",
    "kind":"NodeResourceTopology","metadata":{"name":"a"},
    "attributes":[{"name":"topologyManagerPolicy","value":"single-numa-node"}],
    "zones":[{"name":"node-0","type":"Node","resources":[
                {"name":"nvidia.com/gpu","capacity":"2","allocatable":"2","available":"2"}]},
             {"name":"node-1","type":"Node","resources":[
                {"name":"nvidia.com/gpu","capacity":"2","allocatable":"2","available":"2"}]}]})",
                                                     "test");
  ASSERT_TRUE(report.ok()) << report.message();
  feed.upsert_report(report->front());
  const placement::Machine& after = cluster.machine_of(*cluster.find_node("a"));
  ASSERT_NE(cluster.topology_of(after), nullptr);
  const placement::PodRequest three = *kube::pod_request(pod("u1", 3));
  EXPECT_EQ(cluster.topology_reason(state("a"), cluster.shapes().shape(cluster.intern(three))),
            placement::Reason::kTopologyNever);
  feed.delete_report("a");
  EXPECT_EQ(cluster.topology_of(cluster.machine_of(*cluster.find_node("a"))), nullptr);
}

}  // namespace
}  // namespace mortise::extender
