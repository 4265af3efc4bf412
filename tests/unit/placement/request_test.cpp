#include "scheduler/placement/request.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mortise::placement {
namespace {

constexpr ContainerKind kApp = ContainerKind::kApp;
constexpr ContainerKind kInit = ContainerKind::kInit;
constexpr ContainerKind kSidecar = ContainerKind::kSidecar;

ContainerAsk gpus(const std::string& name, ContainerKind kind, std::int32_t count) {
  return {.name = name, .kind = kind, .gpus = count};
}

ContainerAsk share(const std::string& name, ContainerKind kind, MilliGpu milli) {
  return {.name = name, .kind = kind, .gpus = 1, .gpu_milli = milli};
}

PodRequest counted(const std::vector<ContainerAsk>& asks) {
  PodRequest pod;
  const Status status = count_containers(asks, pod);
  EXPECT_TRUE(status.ok());
  return pod;
}

DeviceSet set_of(const std::vector<int>& devices) {
  DeviceSet set;
  for (const int device : devices) set.insert(device);
  return set;
}

std::string shown(const std::vector<ContainerDevices>& parts) {
  std::string out;
  for (const ContainerDevices& part : parts) {
    out += part.container + "=";
    part.devices.for_each([&](int device) { out += std::to_string(device) + ","; });
    out += ";";
  }
  return out;
}

TEST(CountContainers, AppContainersAreSummed) {
  // One GPU and two GPUs: rejected by a node with two free, accepted by one with three.
  EXPECT_EQ(counted({gpus("a", kApp, 1), gpus("b", kApp, 2)}).gpus, 3);
}

TEST(CountContainers, SidecarStaysBesideLaterInitAndAppContainers) {
  // max(app 1 + sidecar 1, init 1 + earlier sidecar 1) = 2
  EXPECT_EQ(counted({gpus("s", kSidecar, 1), gpus("i", kInit, 1), gpus("a", kApp, 1)}).gpus, 2);
}

TEST(CountContainers, SidecarDeclaredAfterAnInitContainerDoesNotAddToIt) {
  // max(app 1 + sidecar 1, init 2) = 2, and not 3
  EXPECT_EQ(counted({gpus("i", kInit, 2), gpus("s", kSidecar, 1), gpus("a", kApp, 1)}).gpus, 2);
  // With the sidecar first the init container runs beside it: max(1 + 1, 2 + 1) = 3.
  EXPECT_EQ(counted({gpus("s", kSidecar, 1), gpus("i", kInit, 2), gpus("a", kApp, 1)}).gpus, 3);
}

TEST(CountContainers, OrdinaryInitContainersRunOneAfterAnother) {
  EXPECT_EQ(counted({gpus("i", kInit, 2), gpus("j", kInit, 3), gpus("a", kApp, 1)}).gpus, 3);
}

TEST(CountContainers, InitContainerWithoutGpuChangesNothing) {
  const PodRequest plain = counted({gpus("a", kApp, 1), gpus("b", kApp, 1)});
  const PodRequest with_init = counted({gpus("i", kInit, 0), gpus("a", kApp, 1), gpus("b", kApp, 1)});
  EXPECT_EQ(with_init.gpus, 2);
  EXPECT_EQ(with_init.gpus, plain.gpus);
  ASSERT_EQ(with_init.containers.size(), 2U);
  EXPECT_EQ(with_init.containers[0].name, "a");
  EXPECT_EQ(with_init.containers[1].name, "b");
}

TEST(CountContainers, PodWithoutGpusHasNoGpuContainers) {
  const PodRequest pod = counted({gpus("a", kApp, 0)});
  EXPECT_EQ(pod.gpus, 0);
  EXPECT_EQ(pod.gpu_milli, kWholeGpu);
  EXPECT_TRUE(pod.containers.empty());
}

TEST(CountContainers, EachResourceHasItsOwnPeak) {
  const PodRequest pod = counted({{.name = "i", .kind = kInit, .cpu = 4000, .memory = 10, .gpus = 1},
                                  {.name = "a", .kind = kApp, .cpu = 500, .memory = 100, .gpus = 2}});
  EXPECT_EQ(pod.cpu, 4000);
  EXPECT_EQ(pod.memory, 100);
  EXPECT_EQ(pod.gpus, 2);
}

TEST(CountContainers, AmountsBeyondTheRangeStayAtItsTop) {
  constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max();
  const PodRequest pod = counted({{.name = "a", .cpu = kTop, .memory = kTop - 1, .gpus = 2'000'000'000},
                                  {.name = "b", .cpu = kTop, .memory = 2, .gpus = 2'000'000'000}});
  EXPECT_EQ(pod.cpu, kTop);
  EXPECT_EQ(pod.memory, kTop);
  EXPECT_EQ(pod.gpus, std::numeric_limits<std::int32_t>::max());
}

TEST(CountContainers, ShareOfOneContainerIsTheSharesOfThePod) {
  const PodRequest pod = counted({gpus("i", kInit, 0), share("a", kApp, 300), gpus("b", kApp, 0)});
  EXPECT_EQ(pod.gpus, 1);
  EXPECT_EQ(pod.gpu_milli, 300);
}

TEST(CountContainers, SharesOneAfterAnotherNeedTheLargest) {
  const PodRequest pod = counted({share("i", kInit, 700), share("a", kApp, 300)});
  EXPECT_EQ(pod.gpus, 1);
  EXPECT_EQ(pod.gpu_milli, 700);
}

TEST(CountContainers, ShareBesideOtherGpuRequestsIsRefused) {
  PodRequest pod;
  EXPECT_FALSE(count_containers(std::vector{share("a", kApp, 300), share("b", kApp, 300)}, pod).ok());
  EXPECT_FALSE(count_containers(std::vector{share("a", kApp, 300), gpus("b", kApp, 1)}, pod).ok());
  EXPECT_FALSE(count_containers(std::vector{share("s", kSidecar, 300), share("a", kApp, 300)}, pod).ok());
  EXPECT_FALSE(count_containers(std::vector{gpus("i", kInit, 1), share("a", kApp, 300)}, pod).ok());
  EXPECT_EQ(pod.gpus, 0) << "a refused pod is left as it was";
}

TEST(SplitDevices, AppContainersTakeTheirsInOrderLowestFirst) {
  const PodRequest pod = counted({gpus("a", kApp, 1), gpus("b", kApp, 2)});
  EXPECT_EQ(shown(split_devices(pod, set_of({7, 2, 5}))), "a=2,;b=5,7,;");
}

TEST(SplitDevices, InitContainerUsesTheDevicesOfLaterContainersBesideEarlierSidecars) {
  const PodRequest pod = counted({gpus("s", kSidecar, 1), gpus("i", kInit, 2), gpus("a", kApp, 1), gpus("b", kApp, 1)});
  ASSERT_EQ(pod.gpus, 3);
  EXPECT_EQ(shown(split_devices(pod, set_of({0, 64, 127}))), "s=0,;i=64,127,;a=64,;b=127,;");
}

TEST(SplitDevices, PodWithoutContainerNamesIsOneUnnamedContainer) {
  PodRequest pod;
  pod.gpus = 2;
  EXPECT_EQ(shown(split_devices(pod, set_of({1, 3}))), "=1,3,;");
}

TEST(SplitDevices, NoDevicesNoParts) {
  EXPECT_TRUE(split_devices(PodRequest{}, DeviceSet{}).empty());
}

}  // namespace
}  // namespace mortise::placement
