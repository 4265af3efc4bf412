// What others saw of the GPUs that pods hold, and when it may be believed.
#include "scheduler/extender/observer.h"

#include <gtest/gtest.h>

#include "scheduler/extender/state_feed.h"

namespace mortise::extender {
namespace {

kube::Node node(const std::string& name, const std::string& mode = "predicted") {
  kube::Node made;
  made.name = name;
  made.uid = "node-" + name;
  made.allocatable = {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}, {"nvidia.com/gpu", "8"}};
  made.capacity = made.allocatable;
  made.annotations["mortise.dev/topology"] =
      R"({"gpus":[{"index":0,"numa":0},{"index":1,"numa":0},{"index":2,"numa":0},{"index":3,"numa":0},
                  {"index":4,"numa":1},{"index":5,"numa":1},{"index":6,"numa":1},{"index":7,"numa":1}]})";
  made.annotations["mortise.dev/kubelet"] = "policy=single-numa-node,mode=" + mode;
  return made;
}

/// Bound to node a; `started` is seconds after 12:00.
kube::Pod pod(const std::string& uid, int gpus, const std::string& started = "00", const std::string& name = "") {
  kube::Pod made;
  made.ns = "default";
  made.name = name.empty() ? "pod-" + uid : name;
  made.uid = uid;
  made.node_name = "a";
  made.phase = "Running";
  if (!started.empty()) made.start_time = "2025-06-01T12:00:" + started + "Z";
  kube::Container container;
  container.name = "main";
  container.requests = {{"cpu", "2"}};
  container.limits = {{"nvidia.com/gpu", std::to_string(gpus)}};
  made.containers.push_back(container);
  return made;
}

std::string zone(const std::string& name, const std::string& amounts) {
  return R"({"name":")" + name + R"(","type":"Node","resources":[{"name":"nvidia.com/gpu",)" + amounts + "}]}";
}

/// Written so many seconds after 12:00.
topology::NodeTopologyReport report(int free_on_0, int free_on_1, const std::string& written) {
  const auto amounts = [](int available) {
    return R"("capacity":"4","allocatable":"4","available":")" + std::to_string(available) + "\"";
  };
  const auto read = topology::read_node_topologies(
      R"({"apiVersion":"topology.node.k8s.io/v1alpha2","kind":"NodeResourceTopology","metadata":{"name":"a",
          "creationTimestamp":"2025-05-01T00:00:00Z","managedFields":[
            {"manager":"updater","time":"2025-06-01T12:00:)" +
          written + R"(Z","fieldsV1":{"f:zones":{}}},
            {"manager":"kubectl","time":"2025-06-01T12:59:00Z","fieldsV1":{"f:metadata":{}}}]},
          "zones":[)" +
          zone("node-0", amounts(free_on_0)) + "," + zone("node-1", amounts(free_on_1)) + "]}",
      "test");
  EXPECT_TRUE(read.ok()) << read.message();
  return read->front();
}

class ObserverTest : public ::testing::Test {
 protected:
  std::size_t states() {
    EXPECT_TRUE(cluster.check().ok());
    const placement::Belief* belief = cluster.belief_of(*cluster.find_node("a"));
    return belief == nullptr ? 1 : belief->states.size();
  }
  Observations::Counts counts(Witness by) { return bookings.observations().counts()[static_cast<std::size_t>(by)]; }

  placement::ClusterState cluster;
  Bookings bookings{cluster};
  topology::LazyCatalogue catalogue{""};
  StateFeed feed{cluster, bookings, catalogue, 1};
};

TEST_F(ObserverTest, AReportTellsWhereTheGpusOfPodsFoundAreWhateverComesFirst) {
  feed.upsert_node(node("a"));
  feed.replace_pods({pod("u1", 2), pod("u2", 1)});
  EXPECT_EQ(states(), 4U);  // 0 to 3 of them on NUMA node 0
  feed.upsert_report(report(4, 1, "10"));
  EXPECT_EQ(states(), 1U);
  EXPECT_EQ(counts(Witness::kReport).used, 1U);
  EXPECT_EQ(counts(Witness::kReport).mismatches, 0U);
  ASSERT_NE(bookings.observations().last("a"), nullptr);
  EXPECT_EQ(bookings.observations().last("a")->what, "GPUs in use by NUMA node: 0:0 1:3");
  feed.delete_node("a");
  EXPECT_EQ(bookings.observations().last("a"), nullptr);
  feed.upsert_node(node("a"));
  EXPECT_EQ(states(), 1U);
}

TEST_F(ObserverTest, AReportThatCannotHaveThePodIsPassedOver) {
  feed.upsert_node(node("a"));
  feed.replace_pods({pod("u1", 2, "10")});
  feed.upsert_report(report(2, 4, "10"));  // in the same second
  EXPECT_EQ(states(), 3U);
  feed.upsert_report(report(2, 4, "11"));
  EXPECT_EQ(states(), 1U);
  // The first one's GPUs are in the report still, and the second's, as many, are not.
  feed.delete_pod("u1");
  feed.upsert_pod(pod("u2", 2, "12"));
  EXPECT_EQ(states(), 3U);
  feed.upsert_pod(pod("u3", 1, ""));
  feed.upsert_report(report(1, 4, "13"));  // the third has not started, as far as is known
  EXPECT_EQ(states(), 4U);
  feed.upsert_pod(pod("u3", 1, "12"));
  EXPECT_EQ(states(), 1U);
}

TEST_F(ObserverTest, AReportWithOtherSumsIsPassedOver) {
  feed.upsert_node(node("a"));
  feed.replace_pods({pod("u1", 2)});
  feed.upsert_report(report(1, 4, "10"));  // a pod that has ended is in it, or one that is not known yet
  EXPECT_EQ(states(), 3U);
  auto incomplete = report(2, 4, "10");
  incomplete.zones[1].resources[0].has_available = false;
  feed.upsert_report(incomplete);
  EXPECT_EQ(states(), 3U);
  auto other_machine = report(2, 4, "10");
  other_machine.zones[1].resources[0].capacity = 3;
  feed.upsert_report(other_machine);
  EXPECT_EQ(states(), 3U);
  auto impossible = report(4, 4, "10");
  impossible.zones[1].resources[0].allocatable = 6;  // of 4, so that two seem to be in use
  feed.upsert_report(impossible);
  EXPECT_EQ(counts(Witness::kReport).used, 0U);
}

TEST_F(ObserverTest, AReportIsPassedOverWhileAPlaceIsHeld) {
  feed.upsert_node(node("a"));
  feed.replace_pods({pod("u1", 2)});
  kube::Pod waiting = pod("u2", 1);
  waiting.node_name = "";
  placement::DeviceSet last;
  last.insert(7);
  ASSERT_TRUE(bookings
                  .reserve(*kube::pod_request(waiting), {*cluster.find_node("a"), last, 0}, 60,
                           placement::Knowledge::kPredicted)
                  .ok());
  feed.upsert_report(report(2, 4, "10"));
  EXPECT_EQ(counts(Witness::kReport).used, 0U);
}

/// Scraped so many seconds after 12:00, which is 1748779200 (`date -u -d 2025-06-01T12:00:00Z +%s`).
kube::GpuSample sample(int gpu, const std::string& name, int at, const std::string& uid = "") {
  return {{"exporter-7x2", "a"}, gpu, "default", name, uid, (1748779200 + at) * kSecond};
}

TEST_F(ObserverTest, SeriesTellTheDevicesOfEachPod) {
  feed.upsert_node(node("a"));
  feed.replace_pods({pod("u1", 2), pod("u2", 1)});
  feed.take_samples(std::vector{sample(5, "pod-u1", 31), sample(7, "pod-u1", 31), sample(0, "pod-u2", 31)});
  EXPECT_EQ(cluster.belief_of(*cluster.find_node("a")), nullptr);
  const placement::NodeState& state = cluster.state_of(*cluster.find_node("a"));
  EXPECT_EQ(placement::held_gpus(state), placement::GpuMask{0b10100001});
  EXPECT_EQ(counts(Witness::kDcgm).used, 2U);
  EXPECT_EQ(bookings.observations().last("a")->what, "a pod on GPUs 0");
  feed.take_samples(std::vector{sample(5, "pod-u1", 61), sample(7, "pod-u1", 61), sample(0, "pod-u2", 61)});
  EXPECT_EQ(counts(Witness::kDcgm).used, 2U);
}

TEST_F(ObserverTest, SeriesThatMayBeOfAnotherPodArePassedOver) {
  feed.upsert_node(node("a"));
  feed.replace_pods({pod("u2", 1, "20", "web-0")});  // in place of u1, which had this name
  feed.take_samples(std::vector{sample(3, "web-0", 50)});
  EXPECT_EQ(states(), 2U);
  feed.take_samples(std::vector{sample(3, "web-0", 90, "u1")});
  EXPECT_EQ(states(), 2U);
  auto elsewhere = sample(3, "web-0", 90);
  elsewhere.nodes = {"b"};
  auto other_namespace = sample(3, "web-0", 90);
  other_namespace.ns = "prod";
  feed.take_samples(std::vector{elsewhere, other_namespace});
  EXPECT_EQ(states(), 2U);
  EXPECT_EQ(counts(Witness::kDcgm).used, 0U);
  feed.take_samples(std::vector{sample(3, "web-0", 21, "u2")});
  EXPECT_EQ(states(), 1U);
}

TEST_F(ObserverTest, SeriesThatDoNotAddUpArePassedOver) {
  feed.upsert_node(node("a"));
  feed.replace_pods({pod("u1", 2), pod("u2", 1), pod("u3", 1)});
  feed.take_samples(std::vector{sample(5, "pod-u1", 90)});                           // the other GPU is not scraped yet
  feed.take_samples(std::vector{sample(0, "pod-u2", 90), sample(0, "pod-u3", 90)});  // time slices
  feed.take_samples(std::vector{sample(0, "pod-u2", 90), sample(1, "pod-u2", 90)});  // more than it asked for
  feed.take_samples(std::vector{sample(9, "pod-u2", 90)});                           // no such GPU
  EXPECT_EQ(counts(Witness::kDcgm).used, 0U);
}

TEST_F(ObserverTest, IndexesMeanNothingWhereNoSourceNumbersTheGpus) {
  kube::Node plain = node("a");
  plain.annotations.erase("mortise.dev/topology");
  feed.upsert_report(report(4, 4, "10"));
  feed.upsert_node(plain);
  feed.replace_pods({pod("u1", 1, "20")});
  EXPECT_EQ(states(), 2U);
  feed.take_samples(std::vector{sample(5, "pod-u1", 90)});
  EXPECT_EQ(states(), 2U);
}

TEST_F(ObserverTest, WhyNoSeriesCameIsNotedOnceAndCounted) {
  feed.take_samples(Error{"503 Service Unavailable"});
  feed.take_samples(Error{"503 Service Unavailable"});
  EXPECT_EQ(feed.notes().size(), 1U);
  EXPECT_EQ(bookings.observations().failed_queries(), 2U);
}

TEST_F(ObserverTest, AnnotationsAreWhatPodsHoldWhereTheyAreHonoured) {
  feed.upsert_node(node("a", "enforced"));
  kube::Pod told = pod("u1", 1);
  told.annotations["mortise.dev/assigned-devices"] = R"({"main":["5"]})";
  feed.upsert_pod(told);
  EXPECT_EQ(counts(Witness::kAnnotation).used, 1U);
  feed.upsert_pod(told);
  EXPECT_EQ(counts(Witness::kAnnotation).used, 1U);
  told.annotations["mortise.dev/assigned-devices"] = R"({"main":["6"]})";
  feed.upsert_pod(told);
  EXPECT_EQ(counts(Witness::kAnnotation).used, 2U);
  EXPECT_EQ(counts(Witness::kAnnotation).mismatches, 1U);
  feed.upsert_report(report(4, 4, "10"));
  EXPECT_EQ(counts(Witness::kReport).used, 0U);
}

}  // namespace
}  // namespace mortise::extender
