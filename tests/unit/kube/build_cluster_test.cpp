#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/kube/objects/cluster_file.h"

namespace mortise::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

placement::NodeSpec node(const std::string& name, std::int32_t gpus) {
  return {.name = name, .cpu = 8000, .memory = 1000, .pods = 10, .gpus = gpus, .model = "T4"};
}

BoundPod pod(const std::string& name, std::int32_t gpus, MilliGpu share, const std::vector<int>& devices) {
  BoundPod bound;
  bound.request.ns = "d";
  bound.request.name = name;
  bound.request.cpu = 1000;
  bound.request.gpus = gpus;
  bound.request.gpu_milli = share;
  bound.node = "n";
  for (const int device : devices) bound.devices.insert(device);
  return bound;
}

std::vector<int> free_devices(const placement::ClusterState& cluster, const std::string& name) {
  const auto free = cluster.state_of(*cluster.find_node(name)).free_devices();
  return {free.begin(), free.end()};
}

TEST(BuildCluster, NodesGetTheRanksOfTheFile) {
  ClusterFile file;
  file.nodes = {node("a", 1), node("b", 2)};
  const NodeRanks ranks = {{"a", 9}, {"b", 3}, {"elsewhere", 1}};
  const auto cluster = build_cluster(file, &ranks, 42);
  ASSERT_TRUE(cluster.ok()) << cluster.message();
  EXPECT_EQ((*cluster)->node_count(), 2U);
  EXPECT_EQ((*cluster)->node_rank(*(*cluster)->find_node("a")), 9U);
  EXPECT_EQ((*cluster)->node_rank(*(*cluster)->find_node("b")), 3U);
  EXPECT_EQ((*cluster)->totals().gpus, 3);
}

TEST(BuildCluster, WithoutRanksTheSeedDecides) {
  ClusterFile file;
  file.nodes = {node("a", 1)};
  const auto cluster = build_cluster(file, nullptr, 42);
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ((*cluster)->node_rank(*(*cluster)->find_node("a")), seeded_rank(42, "a"));
}

TEST(BuildCluster, KnownDevicesAreTakenAndUnknownOnesAreTheLowestFree) {
  ClusterFile file;
  file.nodes = {node("n", 4)};
  file.pods = {pod("unknown", 2, kWholeGpu, {}), pod("known", 1, kWholeGpu, {0}), pod("share", 1, 300, {})};
  const auto cluster = build_cluster(file, nullptr, 42);
  ASSERT_TRUE(cluster.ok()) << cluster.message();
  EXPECT_THAT(free_devices(**cluster, "n"), ElementsAre(0, 0, 0, 700));
  EXPECT_EQ((*cluster)->totals().pods, 3);
  EXPECT_EQ((*cluster)->totals().cpu_used, 3000);
  EXPECT_TRUE((*cluster)->check().ok());
}

TEST(BuildCluster, CordonedNodesKeepTheirPods) {
  ClusterFile file;
  file.nodes = {node("n", 4)};
  file.nodes[0].schedulable = false;
  file.pods = {pod("p", 4, kWholeGpu, {})};
  const auto cluster = build_cluster(file, nullptr, 42);
  ASSERT_TRUE(cluster.ok()) << cluster.message();
  EXPECT_EQ((*cluster)->totals().whole_free_gpus, 0);
}

TEST(BuildCluster, ErrorsNameTheNodeOrThePod) {
  ClusterFile file;
  file.nodes = {node("n", 1)};
  const NodeRanks other = {{"m", 1}};
  EXPECT_EQ(build_cluster(file, &other, 42).message(), "node \"n\" has no rank in the node ranks");
  file.pods = {pod("p", 2, kWholeGpu, {})};
  EXPECT_EQ(build_cluster(file, nullptr, 42).message(), "pod \"d/p\": node \"n\" has too few free GPUs for it");
  file.pods = {pod("p", 1, kWholeGpu, {5})};
  EXPECT_THAT(build_cluster(file, nullptr, 42).message(), HasSubstr("pod \"d/p\": node \"n\": "));
  file.pods[0].node = "x";
  EXPECT_EQ(build_cluster(file, nullptr, 42).message(), "pod \"d/p\": node \"x\" is not in the cluster");
  file.pods.clear();
  file.nodes.push_back(node("n", 1));
  EXPECT_THAT(build_cluster(file, nullptr, 42).message(), HasSubstr("n"));
}

}  // namespace
}  // namespace mortise::kube
