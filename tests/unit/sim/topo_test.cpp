// `mortise topo`, through the program's own entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/sim/topo_program.h"

namespace mortise::sim {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tGPU2\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV2\tSYS\tPIX\t0-7\t0\n"
    "GPU1\tNV2\t X \tSYS\tPHB\t0-7\t0\n"
    "GPU2\tSYS\tSYS\t X \tSYS\t\tN/A\n"
    "mlx5_0\tPIX\tPHB\tSYS\t X \t\t\n";

constexpr const char* kNode = R"(
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: a
    labels: {nvidia.com/gpu.product: Tesla-V100-SXM2-16GB, nvidia.com/gpu.count: "8"}
  status: {allocatable: {cpu: "80", nvidia.com/gpu: "8"}}
- apiVersion: topology.node.k8s.io/v1alpha2
  kind: NodeResourceTopology
  metadata: {name: a}
  attributes: [{name: topologyManagerPolicy, value: restricted}]
  zones:
  - {name: node-0, type: Node, resources: [{name: nvidia.com/gpu, capacity: 4}, {name: memory, capacity: 100Gi}]}
  - {name: node-1, type: Node, resources: [{name: nvidia.com/gpu, capacity: 4}]}
- apiVersion: v1
  kind: Node
  metadata:
    name: b
    annotations:
      mortise.dev/topology: '{"gpus":[{"index":0},{"index":1}],"links":[{"a":0,"b":1,"class":"PIX"}]}'
      mortise.dev/kubelet: policy=best-effort,scope=pod
- apiVersion: v1
  kind: Pod
  metadata: {name: p}
- apiVersion: v1
  kind: Node
  metadata: {name: c, annotations: {mortise.dev/topology: "not JSON"}}
)";

class Topo : public TopoProgram {
 protected:
  Topo() {
    write("matrix.txt", kMatrix);
    write("node.yaml", kNode);
  }
};

TEST_F(Topo, JsonHasEveryPairOnceAndNullWhereTheInputDoesNotSay) {
  const Ran ran = run({"--matrix", path("matrix.txt"), "--json"});
  ASSERT_EQ(ran.code, kExitDone) << ran.err;
  const json topo = json::parse(ran.out);
  EXPECT_EQ(topo["gpus"][0], json::parse(R"({"index":0,"numa":0,"cpus":"0-7"})"));
  EXPECT_EQ(topo["gpus"][2], json::parse(R"({"index":2,"numa":null,"cpus":null})"));
  EXPECT_EQ(topo["nics"], json::parse(R"([{"name":"mlx5_0","device":"mlx5_0"}])"));
  ASSERT_EQ(topo["links"].size(), 3U);
  EXPECT_EQ(topo["links"][0],
            json::parse(R"({"a":0,"b":1,"class":"NV2","nvlinks":2,"mb_per_s":null,"switched":false})"));
  EXPECT_EQ(topo["links"][1], json::parse(R"({"a":0,"b":2,"class":"SYS","nvlinks":0,"mb_per_s":null})"));
  EXPECT_EQ(topo["nic_links"][1], json::parse(R"({"gpu":1,"nic":"mlx5_0","class":"PHB"})"));
  EXPECT_EQ(topo["nvlink_domains"], json::parse("[[0,1]]"));
}

TEST_F(Topo, AModelGivesBandwidth) {
  const Ran ran = run({"--matrix", path("matrix.txt"), "--gpu", "V100", "--json"});
  ASSERT_EQ(ran.code, kExitDone) << ran.err;
  const json topo = json::parse(ran.out);
  EXPECT_EQ(topo["links"][0]["mb_per_s"], 50000);  // two links of 25 GB/s
  EXPECT_EQ(topo["links"][1]["mb_per_s"], 9000);
}

TEST_F(Topo, WhatAnnotatePrintsReadsBackAsTheSameMachine) {
  const Ran annotation = run({"--matrix", path("matrix.txt"), "--annotate"});
  ASSERT_EQ(annotation.code, kExitDone) << annotation.err;
  write("annotation.json", annotation.out);
  write("topo.json", run({"--matrix", path("matrix.txt"), "--json"}).out);
  EXPECT_EQ(run({"--node", path("annotation.json"), "--annotate"}).out, annotation.out);
  EXPECT_EQ(run({"--node", path("topo.json"), "--json"}).out, run({"--matrix", path("matrix.txt"), "--json"}).out);
}

TEST_F(Topo, MachinesOfTheCatalogueAndSyntheticOnesAreShown) {
  const Ran ran = run({"--machine", "dgx-1v"});
  ASSERT_EQ(ran.code, kExitDone) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("NV2"), HasSubstr("NVLink domain: GPUs 0, 1, 2, 3, 4, 5, 6, 7"),
                             HasSubstr("synthetic: socket:2 numa:1")));
  EXPECT_EQ(run({"--synthetic", "numa:2 gpu:4 nvswitch:1", "--json"}).code, kExitDone);
}

TEST_F(Topo, ANodeCombinesItsSources) {
  const Ran ran = run({"--node", path("node.yaml"), "--name", "a", "--json"});
  ASSERT_EQ(ran.code, kExitDone) << ran.err;
  const json topo = json::parse(ran.out);
  EXPECT_EQ(topo["kubelet"], json::parse(R"({"policy":"restricted"})"));
  EXPECT_EQ(topo["gpus"][4]["numa"], 1);
  EXPECT_EQ(topo["gpus"][0]["model"], "Tesla-V100-SXM2-16GB");
  EXPECT_EQ(topo["links"][2],
            json::parse(R"({"a":0,"b":3,"class":"NV2","nvlinks":2,"mb_per_s":50000,"switched":false})"));
  EXPECT_EQ(topo["numa_nodes"][0]["memory"], 107374182400);  // the report's, not the catalogue's
  EXPECT_THAT(ran.err, HasSubstr("taken for a dgx-1v"));

  const Ran annotated = run({"--node", path("node.yaml"), "--name", "b", "--json"});
  ASSERT_EQ(annotated.code, kExitDone) << annotated.err;
  EXPECT_EQ(json::parse(annotated.out)["links"][0]["class"], "PIX");
  EXPECT_EQ(json::parse(annotated.out)["kubelet"], json::parse(R"({"policy":"best-effort","scope":"pod"})"));
}

TEST_F(Topo, MistakesAreOneLineAndExitTwo) {
  const auto refused = [](const std::vector<std::string>& arguments) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, kExitBad);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_EQ(refused({}), "mortise: 0 machines given; allowed: one of --matrix, --machine, --node, --synthetic\n");
  EXPECT_THAT(refused({"--machine", "dgx-9"}), StartsWith("mortise: unknown machine \"dgx-9\"; known: a10-1, a10-4"));
  EXPECT_THAT(refused({"--machine", "dgx-1v", "--gpu", "Z80"}),
              StartsWith("mortise: --gpu: unknown GPU model \"Z80\"; known: "));
  EXPECT_THAT(refused({"--synthetic", "gpu:x"}), StartsWith("mortise: --synthetic:1: gpu is \"x\""));
  EXPECT_THAT(refused({"--node", path("node.yaml")}), HasSubstr("3 nodes; give one by --name: a, b, c"));
  EXPECT_THAT(refused({"--node", path("node.yaml"), "--name", "d"}), HasSubstr("no node \"d\"; known: a, b, c"));
  EXPECT_THAT(
      refused({"--node", path("node.yaml"), "--name", "c"}),
      HasSubstr("node \"c\" says nothing of its topology (annotation left out: mortise.dev/topology:1: not JSON)"));
  EXPECT_THAT(refused({"--matrix", path("missing")}), HasSubstr("missing"));
  EXPECT_THAT(refused({"--matrix", path("node.yaml")}), HasSubstr("node.yaml:1: no line of column names"));
  EXPECT_THAT(refused({"--machine", "t4-2", "--json", "--annotate"}), HasSubstr("exclude each other"));
  EXPECT_THAT(refused({"--matrix", path("matrix.txt"), "--gpu", "T4"}),
              HasSubstr("GPU 0 has a link NV2, but T4 has 0 NVLinks"));
  EXPECT_THAT(refused({"--matrix", path("matrix.txt"), "--draw", path("matrix.txt")}), HasSubstr("matrix.txt"));
}

}  // namespace
}  // namespace mortise::sim
