#include "scheduler/kube/objects/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mortise::kube {
namespace {

using testing::HasSubstr;

Node node_with(ResourceList allocatable, ResourceList capacity = {}) {
  Node node;
  node.name = "n";
  node.allocatable = std::move(allocatable);
  node.capacity = std::move(capacity);
  return node;
}

placement::NodeSpec read(const Node& node) {
  const auto spec = node_spec(node);
  if (!spec) {
    ADD_FAILURE() << spec.message();
    return {};
  }
  return *spec;
}

std::string refusal(const Node& node) {
  const auto spec = node_spec(node);
  return spec.ok() ? "accepted" : spec.message();
}

TEST(ParseNode, ReadsTheFieldsWeUse) {
  const auto node =
      parse_node(R"({"metadata": {"name": "knoten-é", "uid": "u", "resourceVersion": "7", "labels": {"gpu": "on"},
    "annotations": {"a": "b"}}, "spec": {"unschedulable": true},
    "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3500m", "pods": 250}}})");
  ASSERT_TRUE(node.ok()) << node.message();
  EXPECT_EQ(node->name, "knoten-é");
  EXPECT_EQ(node->uid, "u");
  EXPECT_EQ(node->resource_version, "7");
  EXPECT_EQ(node->labels.at("gpu"), "on");
  EXPECT_EQ(node->annotations.at("a"), "b");
  EXPECT_TRUE(node->unschedulable);
  EXPECT_EQ(node->capacity.at("cpu"), "4");
  EXPECT_EQ(node->allocatable.at("pods"), "250");
}

TEST(ParseNode, NameMustBeOneWord) {
  for (const char* text : {R"({})", "null", R"({"metadata": {"name": ""}})", R"({"metadata": {"name": "a b"}})",
                           R"({"metadata": {"name": "a\nb"}})", R"({"metadata": {"name": "a,b"}})"}) {
    const auto node = parse_node(text);
    ASSERT_FALSE(node.ok()) << text;
    EXPECT_THAT(node.message(), HasSubstr("is not a node name"));
  }
}

TEST(ParseNode, WrongTypeIsNamedWithItsPath) {
  EXPECT_EQ(parse_node(R"({"metadata": {"name": "n"}, "spec": {"unschedulable": "yes"}})").message(),
            "spec.unschedulable must be true or false, not of type string");
}

TEST(NodeSpecOf, AllocatableCountsAndCapacityFillsItsGaps) {
  const auto spec = read(node_with({{"cpu", "31850m"}, {"nvidia.com/gpu", "0"}},
                                   {{"cpu", "32"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "16"}, {"pods", "234"}}));
  EXPECT_EQ(spec.name, "n");
  EXPECT_EQ(spec.cpu, 31'850);
  EXPECT_EQ(spec.memory, Bytes{1} << 30);
  EXPECT_EQ(spec.gpus, 0) << "allocatable says none, although capacity is 16";
  EXPECT_EQ(spec.pods, 234);
}

TEST(NodeSpecOf, NodeWithoutStatusHasNothingButTheDefaultPodLimit) {
  const auto spec = read(node_with({}));
  EXPECT_EQ(spec.cpu, 0);
  EXPECT_EQ(spec.memory, 0);
  EXPECT_EQ(spec.gpus, 0);
  EXPECT_EQ(spec.pods, 110);
  EXPECT_TRUE(spec.schedulable);
}

TEST(NodeSpecOf, CordonedNodeIsNotSchedulable) {
  Node node = node_with({});
  node.unschedulable = true;
  EXPECT_FALSE(read(node).schedulable);
}

TEST(NodeSpecOf, ModelComesFromGpuFeatureDiscoveryThenFromTheOpenbLabel) {
  Node node = node_with({{"nvidia.com/gpu", "8"}});
  EXPECT_EQ(read(node).model, "");
  node.labels["alibabacloud.com/gpu-card-model"] = "G2";
  EXPECT_EQ(read(node).model, "G2");
  node.labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3";
  EXPECT_EQ(read(node).model, "NVIDIA-H100-80GB-HBM3");
}

TEST(NodeSpecOf, OpenbCountIsUsedOnlyWithoutNvidiaGpus) {
  EXPECT_EQ(read(node_with({{"alibabacloud.com/gpu-count", "8"}, {"alibabacloud.com/gpu-milli", "8000"}})).gpus, 8);
  EXPECT_EQ(read(node_with({{"alibabacloud.com/gpu-count", "8"}, {"nvidia.com/gpu", "4"}})).gpus, 4);
}

TEST(NodeSpecOf, OtherVendorsGpusAndMigProfilesAreNotGpus) {
  EXPECT_EQ(
      read(node_with({{"amd.com/gpu", "8"}, {"nvidia.com/mig-1g.5gb", "7"}, {"nvidia.com/gpu.shared", "128"}})).gpus,
      0);
}

TEST(NodeSpecOf, BadAmountsAreRefusedWithNodeAndResource) {
  EXPECT_EQ(refusal(node_with({{"nvidia.com/gpu", "1.5"}})),
            "node \"n\": nvidia.com/gpu: invalid quantity \"1.5\": not a whole number");
  EXPECT_THAT(refusal(node_with({{"cpu", "four"}})), HasSubstr("node \"n\": cpu: invalid quantity \"four\""));
  EXPECT_THAT(refusal(node_with({{"memory", "-1Gi"}})), HasSubstr("memory: invalid quantity \"-1Gi\": negative"));
  EXPECT_EQ(refusal(node_with({{"nvidia.com/gpu", "129"}})),
            "node \"n\": nvidia.com/gpu: too large; the most a node may have is 128");
  EXPECT_THAT(refusal(node_with({{"cpu", "1E"}})), HasSubstr("cpu: too large"));
  EXPECT_THAT(refusal(node_with({{"memory", "2Pi"}})), HasSubstr("memory: too large"));
  EXPECT_THAT(refusal(node_with({{"pods", "3G"}})), HasSubstr("pods: too large"));
  EXPECT_EQ(read(node_with({{"nvidia.com/gpu", "128"}})).gpus, 128);
}

}  // namespace
}  // namespace mortise::kube
