#include "scheduler/topology/sources/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mortise::topology {
namespace {

Machine machine_of(std::string_view text) {
  auto reading = read_synthetic(text, "--synthetic");
  EXPECT_TRUE(reading.ok()) << reading.message();
  return reading ? std::move(reading->machine) : Machine{};
}

std::string refusal(std::string_view text) {
  const auto reading = read_synthetic(text, "s");
  EXPECT_FALSE(reading.ok()) << text;
  return reading ? std::string() : reading.message();
}

TEST(Synthetic, CountsArePerLevelAbove) {
  const Machine machine = machine_of("socket:2 numa:2 bridge:1 switch:2 gpu:2 nic:1 cpu:4x2 memory:8Gi distance:12,32");
  EXPECT_EQ(machine.numa.size(), 4U);
  EXPECT_EQ(machine.numa[3].socket, 1);
  EXPECT_EQ(to_text(*machine.numa[1].cpus), "4-7,20-23");  // 16 first threads, then the second ones
  EXPECT_EQ(machine.numa[0].memory, Bytes{8} << 30);
  EXPECT_EQ(machine.numa[0].distances, (std::vector<NumaDistance>{{0, 10}, {1, 12}, {2, 32}, {3, 32}}));
  EXPECT_EQ(machine.bridges.size(), 12U);  // 4 host bridges with 2 switches each
  EXPECT_EQ(machine.gpus.size(), 16U);
  EXPECT_EQ(machine.gpus[15].numa, std::vector<int>{3});
  EXPECT_EQ(machine.nics.size(), 8U);
}

TEST(Synthetic, DevicesMayBePlacedOneByOne) {
  const Machine machine = machine_of("numa:4 gpu:2@3,1@1,1");
  ASSERT_EQ(machine.gpus.size(), 4U);
  EXPECT_EQ(machine.gpus[0].numa, std::vector<int>{3});
  EXPECT_EQ(machine.gpus[2].numa, std::vector<int>{1});
  EXPECT_EQ(machine.gpus[3].numa, std::vector<int>{2});  // the place after the last one
}

TEST(Synthetic, GpuMemoryIsAMemoryOnlyNode) {
  const Machine machine = machine_of("gpu:1 cpu:72 gpumem:96Gi");
  ASSERT_EQ(machine.numa.size(), 2U);
  EXPECT_EQ(machine.numa[1].memory_of_gpu, 0);
  EXPECT_EQ(machine.numa[1].cpus, CpuRanges{});
}

TEST(Synthetic, SwitchesTakeTheirLinksFromTheModelOrFromNvlink) {
  EXPECT_EQ(machine_of("gpu:2 model:H100 nvswitch:1").gpu_links[0].nvlinks, 18);
  EXPECT_EQ(machine_of("gpu:2 nvlink:6 nvswitch:1").gpu_links[0].nvlinks, 6);
  EXPECT_EQ(machine_of("gpu:2 nvswitch:1").gpu_links[0].nvlinks, 1);
  const Machine halves = machine_of("gpu:4 nvlink:2 nvswitch:2");
  ASSERT_EQ(halves.gpu_links.size(), 2U);
  EXPECT_EQ(halves.gpu_links[1].a, 2);
  EXPECT_EQ(machine_of("gpu:3 nvlink:all*4").gpu_links.size(), 3U);
}

TEST(Synthetic, TextsReadBackAsTheSameMachine) {
  for (const std::string_view text :
       {"numa:2 gpu:4 nvswitch:1", "gpu:1", "numa:1", "numa:2 gpu:6,2", "socket:2 numa:4 cascade:1 gpu:2@3,2@1,2@7,2@5",
        "socket:2 numa:1 bridge:2 cascade:1 switch:2 gpu:2 nic:1 cpu:24x2 memory:768Gi distance:21 nvlink:6 nvswitch:1",
        "gpu:4 nvlink:0-1,2-3*4", "gpu:4 nvlink:all*2", "numa:2 gpu:1 cpu:4 gpumem:1Gi", "numa:2 cpu:1x2 gpu:1",
        "numa:2 gpu:2 policy:restricted scope:pod", "numa:3 distance:12,32 gpu:1", "numa:1 cpu:8x2"}) {
    const Machine machine = machine_of(text);
    const auto again = to_synthetic(machine);
    ASSERT_TRUE(again.ok()) << text << ": " << again.message();
    EXPECT_EQ(machine_of(*again), machine) << *again;
    EXPECT_EQ(*to_synthetic(machine_of(*again)), *again);
  }
}

TEST(Synthetic, MachinesBeyondTheFormAreNotWritten) {
  Machine machine = machine_of("numa:2 gpu:2");
  machine.gpus[0].uuid = "GPU-1";
  EXPECT_FALSE(to_synthetic(machine).ok());
}

TEST(Synthetic, MistakesNameWhatIsAllowed) {
  EXPECT_THAT(refusal("numa:2 gpus:4"), testing::StartsWith("s:1: unknown item \"gpus\"; known: socket, numa"));
  EXPECT_EQ(refusal("numa:0"), "s:1: numa is \"0\"; allowed: 1..1024");
  EXPECT_EQ(refusal("numa"), "s:1: item \"numa\" has no value");
  EXPECT_EQ(refusal("numa:1 numa:2"), "s:1: item \"numa\" twice");
  EXPECT_THAT(refusal("numa:2 gpu:1@2"), testing::StartsWith("s:1: gpu is \"1@2\"; allowed: COUNT for each place"));
  EXPECT_EQ(refusal("numa:65"), "s:1: more than 64 NUMA nodes");
  EXPECT_EQ(refusal("numa:60 bridge:100"), "s:1: more than 1024 places for devices");
  EXPECT_EQ(refusal("gpu:65"), "s:1: more than 64 GPUs");
  EXPECT_THAT(refusal("gpu:2 nvlink:0-2"), testing::StartsWith("s:1: nvlink is \"0-2\"; allowed:"));
  EXPECT_EQ(refusal("gpu:2 nvlink:0-1,1-0"), "s:1: nvlink has the pair 0-1 twice");
  EXPECT_EQ(refusal("gpu:3 nvlink:1 nvswitch:2"), "s:1: nvswitch: the GPUs do not divide evenly among the switches");
  EXPECT_EQ(refusal("gpu:2 model:T4 nvswitch:1"), "s:1: nvswitch: model \"T4\" has no NVLinks");
  EXPECT_THAT(refusal("memory:0"), testing::StartsWith("s:1: memory is \"0\"; allowed: whole bytes"));
  EXPECT_THAT(refusal("policy:strict"), testing::HasSubstr("unknown topology manager policy"));
  EXPECT_EQ(refusal("numa:1\nnuma:1"), "s:2: more than one line");
}

}  // namespace
}  // namespace mortise::topology
