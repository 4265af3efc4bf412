#include "scheduler/topology/combine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/topology/sources/nrt_json.h"
#include "scheduler/topology/sources/synthetic.h"

namespace mortise::topology {
namespace {

Reading of(std::string_view text) {
  auto reading = read_synthetic(text, "test");
  EXPECT_TRUE(reading.ok()) << reading.message();
  return reading ? *std::move(reading) : Reading{};
}

// Two NUMA nodes with so many GPUs, single-numa-node.
Reading report(int first, int second) {
  const auto zone = [](const std::string& name, const std::string& other, int gpus) {
    return R"({"name":")" + name + R"(","type":"Node","costs":[{"name":")" + name + R"(","value":10},{"name":")" +
           other + R"(","value":21}],"resources":[{"name":"nvidia.com/gpu","capacity":)" + std::to_string(gpus) +
           R"(},{"name":"memory","capacity":"64Gi"}]})";
  };
  auto reading = read_nrt_json(R"({"kind":"NodeResourceTopology","metadata":{"name":"n1"},"attributes":[)"
                               R"({"name":"topologyManagerPolicy","value":"single-numa-node"}],"zones":[)" +
                                   zone("node-0", "node-1", first) + "," + zone("node-1", "node-0", second) + "]}",
                               "nrt");
  EXPECT_TRUE(reading.ok()) << reading.message();
  return reading ? *std::move(reading) : Reading{};
}

TEST(Combine, WhatIsMissingIsFilledAndWhatIsSaidStays) {
  Reading reading = of("numa:2 gpu:2 memory:8Gi nvlink:0-1");
  combine(reading, report(2, 2), "NodeResourceTopology");
  EXPECT_EQ(reading.node, "n1");
  EXPECT_EQ(reading.machine.kubelet.policy, TopologyPolicy::kSingleNumaNode);
  EXPECT_EQ(reading.machine.numa[0].memory, Bytes{8} << 30);
  EXPECT_EQ(reading.machine.numa[0].distances, (std::vector<NumaDistance>{{0, 10}, {1, 21}}));
  EXPECT_EQ(reading.machine.gpu_links.size(), 1U);
  EXPECT_TRUE(reading.machine.gpus_numbered);
  EXPECT_TRUE(reading.notes.empty());
}

TEST(Combine, NumbersOfALowerSourceAreTakenWhereTheCountsAgree) {
  Reading reading = report(2, 2);
  combine(reading, of("numa:2 gpu:1@1,2@0,1@1 model:T4"), "catalogue");
  EXPECT_TRUE(reading.machine.gpus_numbered);
  EXPECT_EQ(reading.machine.gpus[0].numa, std::vector<int>{1});
  EXPECT_EQ(reading.machine.gpus[0].model, "T4");
}

// Labels of a machine that is not in the catalogue tell the model only.
TEST(Combine, CountedGpusStayOnTheirNumaNodesWhereALowerSourceDoesNotSay) {
  Reading reading = report(3, 1);
  Reading labels;
  for (int i = 0; i < 4; ++i) {
    Gpu& gpu = labels.machine.gpus.emplace_back();
    gpu.index = i;
    gpu.model = "T4";
  }
  combine(reading, labels, "labels");
  EXPECT_FALSE(reading.machine.gpus_numbered);
  EXPECT_EQ(reading.machine.gpus[2].numa, std::vector<int>{0});
  EXPECT_EQ(reading.machine.gpus[3].numa, std::vector<int>{1});
  EXPECT_EQ(reading.machine.gpus[3].model, "T4");
  EXPECT_TRUE(reading.notes.empty());
}

TEST(Combine, CpusOfALowerSourceAreTakenOnlyIfTheyAreAsMany) {
  Reading reading = report(2, 2);
  reading.machine.numa[0].cpu_count = 4;
  reading.machine.numa[1].cpu_count = 6;
  combine(reading, of("numa:2 gpu:2 cpu:4"), "catalogue");
  EXPECT_EQ(to_text(reading.machine.numa[0].cpus.value()), "0-3");
  EXPECT_FALSE(reading.machine.numa[1].cpus.has_value());
  EXPECT_EQ(reading.machine.numa[1].cpu_count, 6);
}

TEST(Combine, ContradictionsAreNotedAndTheHigherSourceWins) {
  Reading spread = report(3, 1);
  combine(spread, of("numa:2 gpu:2 model:T4 nvlink:0-1"), "catalogue");
  EXPECT_THAT(spread.notes,
              testing::ElementsAre("catalogue has the GPUs on other NUMA nodes; its devices are left out"));
  EXPECT_EQ(spread.machine.gpus[2].numa, std::vector<int>{0});
  EXPECT_EQ(spread.machine.gpus[2].model, "T4");
  EXPECT_TRUE(spread.machine.gpu_links.empty());

  Reading count = of("numa:2 gpu:4");
  combine(count, report(2, 2), "NodeResourceTopology");
  EXPECT_THAT(count.notes,
              testing::ElementsAre("NodeResourceTopology has 4 GPUs instead of 8; its devices are left out"));
  EXPECT_EQ(count.machine.gpus.size(), 8U);
}

TEST(Combine, ASourceThatFitsNowhereIsLeftOut) {
  Reading reading = of("numa:2 gpu:1 cpu:4");
  Reading more = of("numa:4 gpu:1@0,1@1 cpu:3 model:T4");  // node 2 has CPU 6, which is on node 1 here
  combine(reading, more, "catalogue");
  EXPECT_THAT(reading.notes, testing::ElementsAre(testing::HasSubstr("does not fit the other sources")));
  EXPECT_EQ(reading.machine.numa.size(), 2U);
  EXPECT_EQ(reading.machine.gpus[1].model, "T4");
}

}  // namespace
}  // namespace mortise::topology
