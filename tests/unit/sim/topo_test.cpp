// `mortise topo`, through the program's own entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/verbs.h"
#include "tests/unit/sim/scratch_dir.h"

namespace mortise::sim {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
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

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

class Topo : public testing::Test {
 protected:
  Topo() {
    write("matrix.txt", kMatrix);
    write("node.yaml", kNode);
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_.path() / name, std::ios::binary) << text;
  }
  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }

  static Ran run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"mortise", "topo"});
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Ran ran;
    ran.code = run_command_line(static_cast<int>(argv.size()), argv.data());
    ran.out = testing::internal::GetCapturedStdout();
    ran.err = testing::internal::GetCapturedStderr();
    return ran;
  }

  ScratchDir dir_;
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

TEST_F(Topo, DrawingsShowEveryDeviceAndLink) {
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  const auto draw = [&](const std::string& machine) {
    EXPECT_EQ(run({"--machine", machine, "--draw", path("out.svg")}).code, kExitDone);
    std::ifstream in(path("out.svg"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string mesh = draw("dgx-1v");
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(count(mesh, ">GPU" + std::to_string(gpu) + "<"), 1U);
  for (int nic = 0; nic < 4; ++nic) EXPECT_EQ(count(mesh, ">NIC" + std::to_string(nic) + "<"), 1U);
  // The mesh has 16 edges; each is a line and its white border.
  EXPECT_EQ(count(mesh, "<path "), 32U);
  EXPECT_THAT(
      mesh, AllOf(HasSubstr("NV1, 25 GB/s each way"), HasSubstr("NV2, 50 GB/s each way"), Not(HasSubstr("NVSwitch"))));

  const std::string switched = draw("dgx-a100");
  EXPECT_EQ(count(switched, "<path "), 0U);
  EXPECT_EQ(count(switched, "<line "), 8U);
  EXPECT_THAT(switched, HasSubstr("NVSwitch, 12 NVLinks per GPU, 300 GB/s each way"));
}

}  // namespace
}  // namespace mortise::sim
