#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Container container(const std::string& name, const ResourceList& requests, const ResourceList& limits = {}) {
  return {.name = name, .requests = requests, .limits = limits};
}

Pod pod_of(std::vector<Container> containers) {
  Pod pod;
  pod.ns = "default";
  pod.name = "p";
  pod.uid = "u";
  pod.containers = std::move(containers);
  return pod;
}

placement::PodRequest read(const Pod& pod) {
  const auto request = pod_request(pod);
  if (!request) {
    ADD_FAILURE() << request.message();
    return {};
  }
  return *request;
}

placement::PodRequest gpu_request(const std::string& quantity) {
  return read(pod_of({container("c", {{"nvidia.com/gpu", quantity}})}));
}

std::string refusal(const Pod& pod) {
  const auto request = pod_request(pod);
  return request.ok() ? "accepted" : request.message();
}

TEST(PodRequestOf, KeepsTheNamesOfThePod) {
  const auto request = read(pod_of({}));
  EXPECT_EQ(request.ns, "default");
  EXPECT_EQ(request.name, "p");
  EXPECT_EQ(request.uid, "u");
  EXPECT_EQ(request.gpus, 0);
}

TEST(PodRequestOf, WholeGpusInAnySpelling) {
  EXPECT_EQ(gpu_request("1").gpus, 1);
  EXPECT_EQ(gpu_request("1k").gpus, 1000);
  EXPECT_EQ(gpu_request("1e3").gpus, 1000);
  EXPECT_EQ(gpu_request("1000m").gpus, 1);
  EXPECT_EQ(gpu_request("2.0").gpus, 2);
  EXPECT_EQ(gpu_request("1Ki").gpus, 1024);
  EXPECT_EQ(gpu_request("1").gpu_milli, kWholeGpu);
  EXPECT_EQ(gpu_request("9223372036854775807").gpus, std::numeric_limits<std::int32_t>::max());
}

TEST(PodRequestOf, ImpossibleGpuQuantitiesAreRefusedClearly) {
  for (const char* quantity : {"0.5", "500m", "-1", "", "abc", "9223372036854775808", "1n", "5%"}) {
    const std::string message = refusal(pod_of({container("c", {{"nvidia.com/gpu", quantity}})}));
    EXPECT_THAT(message, AllOf(HasSubstr("container \"c\": nvidia.com/gpu: invalid quantity"), Not(HasSubstr("%"))))
        << quantity;
  }
  EXPECT_EQ(refusal(pod_of({container("c", {{"nvidia.com/gpu", "0.5"}})})),
            "container \"c\": nvidia.com/gpu: invalid quantity \"0.5\": not a whole number");
}

TEST(PodRequestOf, ZeroGpusIsAPodWithoutGpus) {
  const auto request = gpu_request("0");
  EXPECT_EQ(request.gpus, 0);
  EXPECT_THAT(request.containers, IsEmpty());
}

TEST(PodRequestOf, LimitsStandInForMissingRequests) {
  EXPECT_EQ(read(pod_of({container("c", {}, {{"nvidia.com/gpu", "2"}})})).gpus, 2);
  EXPECT_EQ(read(pod_of({container("c", {{"nvidia.com/gpu", "2"}})})).gpus, 2);
  EXPECT_EQ(read(pod_of({container("c", {{"nvidia.com/gpu", "2"}}, {{"nvidia.com/gpu", "2"}})})).gpus, 2);
  EXPECT_EQ(read(pod_of({container("c", {{"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu", "4"}})})).gpus, 1);
  // Each resource on its own.
  const auto mixed = read(pod_of({container("c", {{"cpu", "1"}}, {{"cpu", "2"}, {"memory", "1Gi"}})}));
  EXPECT_EQ(mixed.cpu, 1000);
  EXPECT_EQ(mixed.memory, Bytes{1} << 30);
}

TEST(PodRequestOf, CpuAndMemoryAreRoundedUp) {
  const auto request = read(pod_of({container("c", {{"cpu", "1500u"}, {"memory", "0.1"}})}));
  EXPECT_EQ(request.cpu, 2);
  EXPECT_EQ(request.memory, 1);
}

TEST(PodRequestOf, OverheadAddsToCpuAndMemoryButNeverToGpus) {
  Pod pod = pod_of({container("c", {{"cpu", "1"}, {"memory", "100"}, {"nvidia.com/gpu", "1"}})});
  pod.overhead = {{"cpu", "250m"}, {"memory", "20"}, {"nvidia.com/gpu", "4"}};
  const auto request = read(pod);
  EXPECT_EQ(request.cpu, 1250);
  EXPECT_EQ(request.memory, 120);
  EXPECT_EQ(request.gpus, 1);
}

TEST(PodRequestOf, PodLevelResourcesSetCpuAndMemoryButNeverGpus) {
  Pod pod = pod_of({container("c", {{"cpu", "1"}, {"memory", "100"}, {"nvidia.com/gpu", "1"}})});
  pod.requests = {{"cpu", "3"}, {"nvidia.com/gpu", "4"}};
  pod.limits = {{"cpu", "9"}, {"memory", "700"}};
  pod.overhead = {{"cpu", "1"}};
  const auto request = read(pod);
  EXPECT_EQ(request.cpu, 4000);
  // The API server takes a request that is missing from the containers; only where they have none, from the limit.
  EXPECT_EQ(request.memory, 100);
  EXPECT_EQ(request.gpus, 1);
  pod.containers[0].requests.erase("memory");
  EXPECT_EQ(read(pod).memory, 700);
}

TEST(PodRequestOf, EphemeralContainersAreIgnored) {
  const auto pod = parse_pod(R"({"spec": {
    "ephemeralContainers": [{"name": "debug", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}})");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(read(*pod).gpus, 2);
}

TEST(PodRequestOf, SidecarsAndInitContainersFollowTheCountingRule) {
  const auto pod = parse_pod(R"({"spec": {
    "initContainers": [
      {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
      {"name": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})");
  ASSERT_TRUE(pod.ok());
  const auto request = read(*pod);
  EXPECT_EQ(request.gpus, 2);
  ASSERT_EQ(request.containers.size(), 3U);
  EXPECT_EQ(request.containers[0].name, "s");
  EXPECT_EQ(request.containers[0].kind, placement::ContainerKind::kSidecar);
}

TEST(PodRequestOf, OtherVendorsGpusAreNotCounted) {
  EXPECT_EQ(read(pod_of({container("c", {{"amd.com/gpu", "8"}, {"alibabacloud.com/gpu-count", "8"}})})).gpus, 0);
}

TEST(PodRequestOf, ShareOfOneGpu) {
  const auto share = [](const std::string& milli) {
    return read(pod_of({container("c", {{"mortise.dev/gpu-milli", milli}})}));
  };
  EXPECT_EQ(share("300").gpus, 1);
  EXPECT_EQ(share("300").gpu_milli, 300);
  EXPECT_EQ(share("1").gpu_milli, 1);
  EXPECT_EQ(share("1000").gpus, 1);
  EXPECT_EQ(share("1000").gpu_milli, kWholeGpu);
  EXPECT_EQ(share("1k").gpu_milli, kWholeGpu);
  EXPECT_EQ(share("3000").gpus, 3);
  EXPECT_EQ(share("3000").gpu_milli, kWholeGpu);
  EXPECT_EQ(share("0").gpus, 0);
}

TEST(PodRequestOf, ShareBeyondOneGpuMustBeWholeGpus) {
  EXPECT_EQ(refusal(pod_of({container("c", {{"mortise.dev/gpu-milli", "1500"}})})),
            "container \"c\": mortise.dev/gpu-milli: invalid quantity \"1500\": neither a share of one GPU (1 to 1000) "
            "nor a multiple of 1000");
  EXPECT_THAT(refusal(pod_of({container("c", {{"mortise.dev/gpu-milli", "0.5"}})})), HasSubstr("not a whole number"));
}

TEST(PodRequestOf, ShareAndWholeGpusDoNotMix) {
  EXPECT_THAT(refusal(pod_of({container("c", {{"mortise.dev/gpu-milli", "500"}, {"nvidia.com/gpu", "1"}})})),
              HasSubstr("container \"c\": asks for whole GPUs and for mortise.dev/gpu-milli"));
  EXPECT_THAT(
      refusal(pod_of({container("a", {{"mortise.dev/gpu-milli", "500"}}), container("b", {{"nvidia.com/gpu", "1"}})})),
      HasSubstr("mix a share of a GPU"));
  EXPECT_EQ(read(pod_of({container("c", {{"mortise.dev/gpu-milli", "500"}, {"nvidia.com/gpu", "0"}})})).gpu_milli, 500);
}

Pod annotated(std::map<std::string, std::string> annotations) {
  Pod pod = pod_of({container("main", {{"cpu", "12"}})});
  pod.annotations = std::move(annotations);
  return pod;
}

TEST(PodRequestOf, OpenbAnnotationsAskForGpus) {
  const auto share = read(annotated({{"alibabacloud.com/gpu-count", "1"}, {"alibabacloud.com/gpu-milli", "220"}}));
  EXPECT_EQ(share.gpus, 1);
  EXPECT_EQ(share.gpu_milli, 220);
  EXPECT_EQ(share.cpu, 12'000);
  const auto whole = read(annotated({{"alibabacloud.com/gpu-count", "8"}, {"alibabacloud.com/gpu-milli", "1000"}}));
  EXPECT_EQ(whole.gpus, 8);
  EXPECT_EQ(whole.gpu_milli, kWholeGpu);
  EXPECT_EQ(read(annotated({{"alibabacloud.com/gpu-count", "0"}, {"alibabacloud.com/gpu-milli", "0"}})).gpus, 0);
}

TEST(PodRequestOf, OpenbAnnotationsThatDoNotGoTogetherAreRefused) {
  using Annotations = std::map<std::string, std::string>;
  for (const Annotations& annotations :
       {Annotations{{"alibabacloud.com/gpu-count", "1"}}, Annotations{{"alibabacloud.com/gpu-milli", "500"}},
        Annotations{{"alibabacloud.com/gpu-count", "2"}, {"alibabacloud.com/gpu-milli", "500"}},
        Annotations{{"alibabacloud.com/gpu-count", "1"}, {"alibabacloud.com/gpu-milli", "1001"}}}) {
    EXPECT_THAT(refusal(annotated(annotations)), HasSubstr("do not go together"));
  }
  EXPECT_THAT(refusal(annotated({{"alibabacloud.com/gpu-count", "one"}})),
              HasSubstr("annotation alibabacloud.com/gpu-count: invalid quantity \"one\""));
  Pod both = annotated({{"alibabacloud.com/gpu-count", "1"}, {"alibabacloud.com/gpu-milli", "500"}});
  both.containers[0].limits = {{"nvidia.com/gpu", "1"}};
  EXPECT_THAT(refusal(both), HasSubstr("use one"));
}

TEST(PodRequestOf, ModelsComeFromSelectorAndAnnotation) {
  Pod pod = annotated({{"alibabacloud.com/gpu-card-model", "V100M32|V100M16|V100M32"}});
  EXPECT_THAT(read(pod).models, ElementsAre("V100M16", "V100M32"));
  pod.node_selector = {{"nvidia.com/gpu.product", "V100M32"}, {"zone", "z"}};
  EXPECT_THAT(read(pod).models, ElementsAre("V100M32"));
  pod.node_selector = {{"nvidia.com/gpu.product", "T4"}};
  EXPECT_THAT(refusal(pod), HasSubstr("\"T4\""));
  pod.annotations.clear();
  EXPECT_THAT(read(pod).models, ElementsAre("T4"));
  pod.node_selector.clear();
  EXPECT_THAT(read(pod).models, IsEmpty());
}

// A node may have a million cores and a PiB (2^50 bytes).
TEST(PodRequestOf, HugeAmountsAreJustMoreThanANodeMayHave) {
  const auto request = read(
      pod_of({container("a", {{"cpu", "7E"}, {"memory", "7E"}}), container("b", {{"cpu", "7E"}, {"memory", "7E"}})}));
  EXPECT_EQ(request.cpu, 1'000'000'001);
  EXPECT_EQ(request.memory, 1'125'899'906'842'625);
  EXPECT_EQ(request.asks.front().cpu, 1'000'000'001);
}

}  // namespace
}  // namespace mortise::kube
