#include "scheduler/kube/objects/pod_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mortise::kube {
namespace {

using placement::ContainerKind;
using placement::NvlinkWish;
using testing::HasSubstr;
using topology::QosClass;
using topology::TopologyPolicy;

placement::PodRequest read(const Pod& pod) {
  const auto request = pod_request(pod);
  if (!request) {
    ADD_FAILURE() << request.message();
    return {};
  }
  return *request;
}

Container container(const ResourceList& requests, const ResourceList& limits) {
  return {.name = "c", .requests = requests, .limits = limits};
}

QosClass qos(std::vector<Container> containers) {
  Pod pod;
  pod.containers = std::move(containers);
  return read(pod).qos;
}

// The rules as Kubernetes documents them ("Pod Quality of Service Classes").
TEST(QosOf, GuaranteedNeedsEqualCpuAndMemoryOfEveryContainer) {
  const ResourceList full = {{"cpu", "2"}, {"memory", "1Gi"}};
  EXPECT_EQ(qos({container(full, full)}), QosClass::kGuaranteed);
  EXPECT_EQ(qos({container({}, full)}), QosClass::kGuaranteed) << "requests default to the limits";
  EXPECT_EQ(qos({container({{"cpu", "2000m"}, {"memory", "1024Mi"}}, full)}), QosClass::kGuaranteed);
  EXPECT_EQ(qos({container({{"cpu", "1"}}, full)}), QosClass::kBurstable);
  EXPECT_EQ(qos({container(full, {})}), QosClass::kBurstable);
  EXPECT_EQ(qos({container({}, {{"cpu", "2"}})}), QosClass::kBurstable) << "no memory";
  EXPECT_EQ(qos({container({}, full), container({}, {})}), QosClass::kBurstable);
  EXPECT_EQ(qos({container({}, full), container({}, full)}), QosClass::kGuaranteed);
}

TEST(QosOf, DevicesAloneAreBestEffort) {
  EXPECT_EQ(qos({}), QosClass::kBestEffort);
  EXPECT_EQ(qos({container({}, {{"nvidia.com/gpu", "8"}})}), QosClass::kBestEffort);
  EXPECT_EQ(qos({container({{"cpu", "0"}}, {{"memory", "0"}})}), QosClass::kBestEffort) << "0 is not given";
}

TEST(QosOf, InitContainersCount) {
  const ResourceList full = {{"cpu", "2"}, {"memory", "1Gi"}};
  Container init = container({{"cpu", "1"}}, {});
  init.kind = ContainerKind::kInit;
  EXPECT_EQ(qos({init, container({}, full)}), QosClass::kBurstable);
}

TEST(QosOf, PodLevelResourcesDecideAlone) {
  Pod pod;
  pod.containers = {container({{"cpu", "1"}}, {})};
  pod.limits = {{"cpu", "4"}, {"memory", "8Gi"}};
  EXPECT_TRUE(read(pod).pod_level_resources);
  // Defaulting: cpu from the container (1, not the limit of 4), memory from the limit.
  EXPECT_EQ(read(pod).qos, QosClass::kBurstable);
  pod.requests = {{"cpu", "4"}};
  EXPECT_EQ(read(pod).qos, QosClass::kGuaranteed);
  pod.limits = {{"cpu", "4"}};
  EXPECT_EQ(read(pod).qos, QosClass::kBurstable);
  pod.requests.clear();
  pod.limits = {{"nvidia.com/gpu", "1"}};
  EXPECT_FALSE(read(pod).pod_level_resources) << "only CPU, memory and huge pages can be set for a pod";
  pod.limits = {{"hugepages-2Mi", "4Mi"}};
  EXPECT_TRUE(read(pod).pod_level_resources);
}

TEST(QosOf, WhatTheApiServerSaysCounts) {
  const auto pod = parse_pod(
      R"({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]},
          "status": {"qosClass": "Burstable"}})");
  ASSERT_TRUE(pod.ok()) << pod.message();
  EXPECT_EQ(read(*pod).qos, QosClass::kBurstable);
}

TEST(QosOf, BadLimitsNameTheContainer) {
  Pod pod;
  pod.containers = {container({{"cpu", "1"}}, {{"cpu", "lots"}})};
  EXPECT_THAT(pod_request(pod).message(), HasSubstr("container \"c\": cpu: "));
}

TEST(AlignmentOf, EveryContainersAskIsKept) {
  const auto pod = parse_pod(R"({"spec": {
    "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "4"}}}],
    "containers": [{"name": "a", "resources": {"limits": {"cpu": "2", "memory": "64", "nvidia.com/gpu": "1"}}},
                   {"name": "b", "resources": {"requests": {"cpu": "500m"}}}]}})");
  ASSERT_TRUE(pod.ok()) << pod.message();
  const auto request = read(*pod);
  ASSERT_EQ(request.asks.size(), 3U);
  EXPECT_EQ(request.asks[0].name, "i");
  EXPECT_EQ(request.asks[0].kind, ContainerKind::kInit);
  EXPECT_EQ(request.asks[0].cpu, 4000);
  EXPECT_EQ(request.asks[1].gpus, 1);
  EXPECT_EQ(request.asks[1].memory, 64);
  EXPECT_EQ(request.asks[2].cpu, 500);
}

TEST(AlignmentOf, GpusByAnnotationAreThoseOfTheFirstAppContainer) {
  Pod pod;
  pod.containers = {container({{"cpu", "12"}}, {})};
  pod.annotations = {{"alibabacloud.com/gpu-count", "2"}, {"alibabacloud.com/gpu-milli", "1000"}};
  const auto request = read(pod);
  ASSERT_EQ(request.asks.size(), 1U);
  EXPECT_EQ(request.asks[0].gpus, 2);
  EXPECT_EQ(request.asks[0].cpu, 12'000);
}

Pod annotated(const std::string& key, const std::string& value) {
  Pod pod;
  pod.annotations = {{key, value}};
  return pod;
}

TEST(AlignmentOf, AnnotationsSayWhatThePodWants) {
  EXPECT_EQ(read(Pod()).topology_policy, TopologyPolicy::kNone);
  EXPECT_EQ(read(Pod()).nvlink, NvlinkWish::kPreferred);
  const auto policy = [](const char* value) { return read(annotated("mortise.dev/topology-policy", value)); };
  EXPECT_EQ(policy("none").topology_policy, TopologyPolicy::kNone);
  EXPECT_EQ(policy("best-effort").topology_policy, TopologyPolicy::kBestEffort);
  EXPECT_EQ(policy("restricted").topology_policy, TopologyPolicy::kRestricted);
  EXPECT_EQ(policy("single-numa-node").topology_policy, TopologyPolicy::kSingleNumaNode);
  EXPECT_EQ(read(annotated("mortise.dev/nvlink", "required")).nvlink, NvlinkWish::kRequired);
  EXPECT_EQ(read(annotated("mortise.dev/nvlink", "preferred")).nvlink, NvlinkWish::kPreferred);
  EXPECT_EQ(read(annotated("mortise.dev/nvlink", "ignore")).nvlink, NvlinkWish::kIgnore);
}

TEST(AlignmentOf, AnUnknownAnnotationValueNamesTheAllowedOnes) {
  EXPECT_EQ(pod_request(annotated("mortise.dev/topology-policy", "strict")).message(),
            "annotation mortise.dev/topology-policy is \"strict\"; allowed: none, best-effort, restricted, "
            "single-numa-node");
  EXPECT_EQ(pod_request(annotated("mortise.dev/nvlink", "")).message(),
            "annotation mortise.dev/nvlink is \"\"; allowed: required, preferred, ignore");
}

}  // namespace
}  // namespace mortise::kube
