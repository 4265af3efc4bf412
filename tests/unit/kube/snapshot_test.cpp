// Bound pods in a cluster file: what they hold, and what is done when that cannot be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/kube/objects/cluster_file.h"
#include "tests/unit/kube/temp_file.h"

namespace mortise::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string node(const std::string& name, int gpus, const std::string& more = "") {
  return R"({"kind":"Node","metadata":{"name":")" + name + R"("},"status":{"allocatable":{"cpu":"8","memory":"1000",)" +
         R"("pods":"10","nvidia.com/gpu":")" + std::to_string(gpus) + "\"" + more + "}}}";
}

struct PodText {
  std::string name;
  std::string requests = R"("nvidia.com/gpu":"1")";
  std::string annotation = "";
  std::string node = "n";
  std::string status = R"("phase":"Running")";
  std::string metadata = "";
};

std::string text_of(const PodText& pod) {
  std::string escaped;
  for (const char c : pod.annotation) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
  const std::string annotations =
      pod.annotation.empty() ? "" : R"(,"annotations":{"mortise.dev/assigned-devices":")" + escaped + "\"}";
  return R"({"kind":"Pod","metadata":{"namespace":"d","name":")" + pod.name + "\"" + annotations + pod.metadata +
         R"(},"spec":{"nodeName":")" + pod.node + R"(","containers":[{"name":"c","resources":{"requests":{)" +
         pod.requests + "}}}]},\"status\":{" + pod.status + "}}";
}

ClusterFile load(const std::string& nodes, const std::vector<PodText>& pods) {
  std::string text = R"({"kind":"List","items":[)" + nodes;
  for (const PodText& pod : pods) text += ",\n" + text_of(pod);
  const test::TempFile file(text + "]}");
  auto cluster = load_cluster_file(file.path());
  if (!cluster) {
    ADD_FAILURE() << cluster.message();
    return {};
  }
  // Whatever the snapshot says, a state can be built from it.
  const auto state = build_cluster(*cluster, nullptr, 1);
  if (!state) {
    ADD_FAILURE() << state.message();
  } else {
    EXPECT_TRUE((*state)->check().ok());
  }
  return *std::move(cluster);
}

std::vector<int> devices(const BoundPod& pod) {
  std::vector<int> all;
  pod.devices.for_each([&](int device) { all.push_back(device); });
  return all;
}

TEST(Snapshot, BoundPodsHoldTheirDevices) {
  const ClusterFile file = load(node("n", 4), {{.name = "a", .annotation = R"({"c":["2"]})"}, {.name = "b"}});
  ASSERT_THAT(file.pods, SizeIs(2));
  EXPECT_EQ(file.pods[0].request.ns, "d");
  EXPECT_EQ(file.pods[0].request.name, "a");
  EXPECT_EQ(file.pods[0].node, "n");
  EXPECT_THAT(devices(file.pods[0]), ElementsAre(2));
  EXPECT_THAT(devices(file.pods[1]), IsEmpty()) << "not known";
  EXPECT_THAT(file.notes, IsEmpty());
}

// `date -u -d 2025-01-31T23:59:59Z +%s`
TEST(Snapshot, BoundPodsKeepTheirStart) {
  const ClusterFile file = load(node("n", 4), {{.name = "a", .status = R"("startTime":"2025-01-31T23:59:59Z")"},
                                               {.name = "b", .status = R"("phase":"Pending")"},
                                               {.name = "c", .status = R"("startTime":"soon")"}});
  ASSERT_THAT(file.pods, SizeIs(3));
  EXPECT_EQ(file.pods[0].start, 1738367999 * kSecond);
  EXPECT_EQ(file.pods[1].start, std::nullopt);
  EXPECT_EQ(file.pods[2].start, std::nullopt);
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("pod \"d/c\" counts as not started: status.startTime \"soon\" is no")));
}

TEST(Snapshot, DevicesOfAllContainersBelongToThePod) {
  const ClusterFile file = load(node("n", 4), {{.name = "a",
                                                .requests = R"("nvidia.com/gpu":"3")",
                                                .annotation = R"({"i":["0","1"],"s":["3"],"c":["1","0"]})"}});
  EXPECT_THAT(devices(file.pods[0]), ElementsAre(0, 1, 3));
}

TEST(Snapshot, TerminalPodsHoldNothingAndDeletingOnesStillDo) {
  const ClusterFile file =
      load(node("n", 4), {{.name = "done", .status = R"("phase":"Succeeded")"},
                          {.name = "failed", .status = R"("phase":"Failed")"},
                          {.name = "going", .metadata = R"(,"deletionTimestamp":"2025-01-01T00:00:00Z")"}});
  ASSERT_THAT(file.pods, SizeIs(1));
  EXPECT_EQ(file.pods[0].request.name, "going");
}

TEST(Snapshot, PendingPodsAndPodsElsewhereAreLeftOutWithANote) {
  const ClusterFile file =
      load(node("n", 4), {{.name = "p1", .node = ""}, {.name = "p2", .node = ""}, {.name = "x", .node = "m"}});
  EXPECT_THAT(file.pods, IsEmpty());
  EXPECT_THAT(file.notes, ElementsAre("pods that are not bound to a node are left out: 2 (first: \"d/p1\")",
                                      "pods on nodes that are not in the file are left out: 1 (first: \"d/x\")"));
}

TEST(Snapshot, PodsMayStandBeforeTheirNodes) {
  const test::TempFile text("[" + text_of({.name = "a"}) + "," + node("n", 1) + "]");
  const auto file = load_cluster_file(text.path());
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_THAT(file->pods, SizeIs(1));
}

TEST(Snapshot, MalformedDeviceAnnotationLeavesTheDevicesUnknown) {
  for (const char* annotation :
       {"GPU-0:BROKEN", "{", "[]", R"({"c":"0"})", R"({"c":[0]})", R"({"c":["-1"]})", R"({"c":["128"]})",
        R"({"c":["0x1"]})", R"({"c":[""]})", R"({"c":["0","0"]})", R"({"c":["99999999999"]})"}) {
    const ClusterFile file = load(node("n", 4), {{.name = "a", .annotation = annotation}});
    ASSERT_THAT(file.pods, SizeIs(1)) << annotation;
    EXPECT_THAT(devices(file.pods[0]), IsEmpty()) << annotation;
    ASSERT_THAT(file.notes, SizeIs(1)) << annotation;
    EXPECT_THAT(file.notes[0], HasSubstr("pod \"d/a\": annotation mortise.dev/assigned-devices"));
  }
}

TEST(Snapshot, DevicesThatCannotBeRightAreForgotten) {
  // Not on the node; not as many as the pod asks for; held by another pod.
  const ClusterFile file = load(node("n", 4), {{.name = "off", .annotation = R"({"c":["4"]})"},
                                               {.name = "two", .annotation = R"({"c":["0","1"]})"},
                                               {.name = "first", .annotation = R"({"c":["3"]})"},
                                               {.name = "second", .annotation = R"({"c":["3"]})"}});
  ASSERT_THAT(file.pods, SizeIs(4));
  EXPECT_THAT(devices(file.pods[0]), IsEmpty());
  EXPECT_THAT(devices(file.pods[1]), IsEmpty());
  EXPECT_THAT(devices(file.pods[2]), ElementsAre(3));
  EXPECT_THAT(devices(file.pods[3]), IsEmpty());
  EXPECT_THAT(file.notes, SizeIs(3));
  EXPECT_EQ(file.nodes[0].gpus, 4) << "the other pods are unaffected";
}

TEST(Snapshot, DevicesByUuidAreUnknown) {
  const ClusterFile file = load(node("n", 4), {{.name = "a", .annotation = R"({"c":["GPU-5fd4e087-86f3"]})"}});
  EXPECT_THAT(devices(file.pods[0]), IsEmpty());
  ASSERT_THAT(file.notes, SizeIs(1));
  EXPECT_THAT(file.notes[0], HasSubstr("UUID"));
}

TEST(Snapshot, SharesOfOneDeviceGoTogether) {
  const ClusterFile file = load(
      node("n", 1), {{.name = "a", .requests = R"("mortise.dev/gpu-milli":"600")"},
                     {.name = "b", .requests = R"("mortise.dev/gpu-milli":"400")", .annotation = R"({"c":["0"]})"}});
  EXPECT_THAT(file.notes, IsEmpty());
  EXPECT_EQ(file.nodes[0].gpus, 1);
}

TEST(Snapshot, WholeGpusFindTheirDevicesBesideShares) {
  // In the order of the file the shares would take both devices of the node.
  const std::string share = R"("mortise.dev/gpu-milli":"500")";
  const ClusterFile file =
      load(node("n", 2), {{.name = "a", .requests = share}, {.name = "b"}, {.name = "c", .requests = share}});
  EXPECT_THAT(file.notes, IsEmpty());
}

TEST(Snapshot, NodeThatHoldsMoreThanItHasCountsAsFull) {
  const ClusterFile file =
      load(node("n", 1), {{.name = "a", .requests = R"("nvidia.com/gpu":"2","cpu":"9","memory":"7")"},
                          {.name = "b", .requests = R"("nvidia.com/gpu":"1")"}});
  EXPECT_EQ(file.nodes[0].gpus, 3);
  EXPECT_EQ(file.nodes[0].cpu, 9000);
  EXPECT_EQ(file.nodes[0].memory, 1000);
  EXPECT_THAT(file.notes, ElementsAre("node \"n\" holds more than it has and counts as full: milli-CPU (has 8000, "
                                      "held 9000), GPUs (has 1, held 3)"));
}

TEST(Snapshot, PodThatCannotBeCountedClosesItsNodeOnly) {
  const ClusterFile file = load(node("n", 4) + "," + node("m", 4),
                                {{.name = "a", .requests = R"("nvidia.com/gpu":"1","mortise.dev/gpu-milli":"5")"},
                                 {.name = "b"},
                                 {.name = "c", .node = "m"}});
  EXPECT_TRUE(file.nodes[0].blocked);
  EXPECT_FALSE(file.nodes[1].blocked);
  EXPECT_THAT(file.pods, SizeIs(2));
  ASSERT_THAT(file.notes, SizeIs(1));
  EXPECT_THAT(file.notes[0], HasSubstr("node \"n\" takes no more GPU pods: what its pod \"d/a\" holds is not known"));
}

TEST(Snapshot, PodBeyondAnyNodeClosesItsNode) {
  for (const char* requests : {R"("nvidia.com/gpu":"129")", R"("cpu":"7E")", R"("memory":"7Ei")"}) {
    const ClusterFile file = load(node("n", 4), {{.name = "a", .requests = requests}, {.name = "b"}});
    ASSERT_THAT(file.pods, SizeIs(1)) << requests;
    EXPECT_EQ(file.pods[0].request.name, "b");
    EXPECT_TRUE(file.nodes[0].blocked);
    EXPECT_EQ(file.nodes[0].gpus, 4);
  }
}

}  // namespace
}  // namespace mortise::kube
