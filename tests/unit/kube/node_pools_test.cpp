// Clusters that are described by machines of the catalogue.
#include "scheduler/kube/objects/node_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/tree.h"
#include "tests/unit/kube/temp_file.h"

namespace mortise::kube {
namespace {

using placement::AssignmentMode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using topology::TopologyPolicy;

constexpr Bytes kGiB = Bytes{1} << 30;

ClusterFile load(const std::string& cluster, const ClusterOptions& options = {}) {
  auto file = load_cluster_file(cluster, options);
  if (!file) {
    ADD_FAILURE() << file.message();
    return {};
  }
  return *std::move(file);
}

ClusterFile load_pools(const std::string& pools, const ClusterOptions& options = {}) {
  const test::TempFile file(pools);
  return load(file.path(), options);
}

std::string refusal(const std::string& pools) {
  const test::TempFile file(pools);
  const auto cluster = load_cluster_file(file.path());
  if (cluster) return "accepted";
  EXPECT_THAT(cluster.message(), StartsWith(file.path() + ":"));
  return cluster.message().substr(file.path().size());
}

TEST(PoolList, MachinesOfTheCatalogueByNameAndCount) {
  const ClusterFile file = load("dgx-a100:3,t4-2:2");
  ASSERT_EQ(file.nodes.size(), 5U);
  EXPECT_EQ(file.nodes[0].name, "dgx-a100-0000");
  EXPECT_EQ(file.nodes[2].name, "dgx-a100-0002");
  EXPECT_EQ(file.nodes[3].name, "t4-2-0000");
  // 2 x 64 cores with two threads each and 1 TiB; 110 pods are kubelet's default.
  EXPECT_EQ(file.nodes[0].cpu, 256'000);
  EXPECT_EQ(file.nodes[0].memory, 1024 * kGiB);
  EXPECT_EQ(file.nodes[0].pods, 110);
  EXPECT_EQ(file.nodes[0].gpus, 8);
  EXPECT_EQ(file.nodes[0].model, "NVIDIA-A100-SXM4-40GB");
  ASSERT_NE(file.nodes[0].topology, nullptr);
  EXPECT_EQ(file.nodes[0].topology, file.nodes[1].topology);
  EXPECT_EQ(file.nodes[0].topology->numa_classes().size(), 4U) << "two GPUs on each of four NUMA nodes";
  EXPECT_EQ(file.nodes[3].gpus, 2);
  EXPECT_EQ(file.labels.size(), 5U);
  EXPECT_THAT(file.notes, IsEmpty());
  EXPECT_TRUE(build_cluster(file, nullptr, 1).ok());
}

TEST(PoolList, MemoryOfAGpuIsNotThatOfTheNode) {
  EXPECT_EQ(load("gh200:1").nodes[0].memory, 480 * kGiB);
}

TEST(PoolList, AMachineThatComesTwiceIsNumberedThrough) {
  const ClusterFile file = load("t4-2:1,t4-4:1,t4-2:1");
  EXPECT_EQ(file.nodes[0].name, "t4-2-0000");
  EXPECT_EQ(file.nodes[2].name, "t4-2-0001");
}

TEST(PoolList, MistakesAreOneLine) {
  const auto message = [](const std::string& list) { return load_cluster_file(list).message(); };
  EXPECT_THAT(message("dgx-9:4"), StartsWith("\"dgx-9:4\": unknown machine \"dgx-9\"; known: a10-1, a10-4,"));
  EXPECT_EQ(message("t4-2:x"), "\"t4-2:x\": \"t4-2:x\" is no MACHINE:COUNT with a count from 1 to 1000000");
  for (const char* bad : {"t4-2:0", "t4-2:-1", "t4-2:", ":4", "t4-2:1,", "t4-2:1,,t4-4:1", "t4-2:1000001", "t4-2:1 "}) {
    EXPECT_THAT(message(bad), StartsWith("\"")) << bad;
  }
  EXPECT_THAT(message("t4-2:900000,t4-4:900000"), HasSubstr("more than 1000000 nodes in all pools together"));
  EXPECT_THAT(message("t4-2"),
              HasSubstr("t4-2: cannot be read: No such file or directory; allowed: an openb node CSV"));
  EXPECT_THAT(load_cluster_file("t4-2:1", {.catalogue = "/nonexistent"}).message(), HasSubstr("/nonexistent"));
}

TEST(PoolList, GpuModelsAreSpelledAsTheUserOfTheClusterDoes) {
  const auto model = [](const std::string& machine, bool trace) {
    return load(machine + ":1", {.trace_models = trace}).nodes[0].model;
  };
  // As in the openb trace ("V100M32", "T4", ...); where published traces have no such GPU, as labels spell it.
  EXPECT_EQ(model("dgx-1v", true), "V100M32");
  EXPECT_EQ(model("t4-4", true), "T4");
  EXPECT_EQ(model("a10-1", true), "A10");
  EXPECT_EQ(model("p100-2", true), "P100");
  EXPECT_EQ(model("hgx-h100", true), "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(model("dgx-1v", false), "Tesla-V100-SXM2-32GB");
}

TEST(PoolFile, EveryKey) {
  const ClusterFile file = load_pools(
      "# two pools\n"
      "pools:\n"
      "- machine: dgx-1v\n"
      "  count: 3\n"
      "  prefix: volta\n"
      "  model: V100\n"
      "  labels: {zone: a, gpu: \"on\"}\n"
      "  kubelet: {policy: single-numa-node, cpu: static, reserved-cpus: \"0,40\", version: 1.30}\n"
      "  mode: enforced\n"
      "  cpu: 78\n"
      "  memory: 500Gi\n"
      "  pods: 250\n"
      "  rack_size: 2\n"
      "- {machine: t4-2, count: 1, kubelet: 'policy=restricted,scope=pod'}\n");
  ASSERT_EQ(file.nodes.size(), 4U);
  const placement::NodeSpec& node = file.nodes[2];
  EXPECT_EQ(node.name, "volta-0002");
  EXPECT_EQ(node.model, "V100");
  EXPECT_EQ(node.cpu, 78'000);
  EXPECT_EQ(node.memory, 500 * kGiB);
  EXPECT_EQ(node.pods, 250);
  ASSERT_NE(node.topology, nullptr);
  EXPECT_EQ(node.topology->kubelet().policy, TopologyPolicy::kSingleNumaNode);
  EXPECT_TRUE(node.topology->enforced());
  EXPECT_EQ(node.topology->spec().reserved_cpus.count(), 2U);
  EXPECT_TRUE(node.topology->kubelet().rules.equal_masks) << "1.30 is not 1.3";
  EXPECT_THAT(file.labels[0],
              ElementsAre(testing::Pair("gpu", "on"), testing::Pair("topology.kubernetes.io/rack", "volta-rack-000"),
                          testing::Pair("zone", "a")));
  EXPECT_EQ(file.labels[1].at("topology.kubernetes.io/rack"), "volta-rack-000");
  EXPECT_EQ(file.labels[2].at("topology.kubernetes.io/rack"), "volta-rack-001");
  EXPECT_EQ(file.nodes[3].topology->kubelet().scope, topology::TopologyScope::kPod);
  EXPECT_EQ(file.nodes[3].topology->spec().mode, AssignmentMode::kPredicted);
  EXPECT_THAT(file.labels[3], IsEmpty());
}

TEST(PoolFile, ReservedCpusFollowFromWhatIsAllocatable) {
  const ClusterFile file = load_pools("pools:\n- {machine: dgx-1v, count: 1, cpu: 78, kubelet: {cpu: static}}\n");
  EXPECT_EQ(file.nodes[0].topology->spec().reserved_cpus.count(), 2U);
}

TEST(PoolFile, PoolsOfOnePrefixShareNumbersAndRacks) {
  const ClusterFile file = load_pools(
      "pools:\n"
      "- {machine: t4-2, count: 3, rack_size: 2, rack_label: example.com/rack}\n"
      "- {machine: t4-2, count: 2, rack_size: 2, rack_label: example.com/rack, kubelet: {policy: restricted}}\n");
  EXPECT_EQ(file.nodes[3].name, "t4-2-0003");
  EXPECT_EQ(file.labels[2].at("example.com/rack"), "t4-2-rack-001");
  EXPECT_EQ(file.labels[3].at("example.com/rack"), "t4-2-rack-002");
  EXPECT_NE(file.nodes[0].topology, file.nodes[3].topology);
}

TEST(PoolFile, MistakesNameFileAndLine) {
  const std::string pool = "pools:\n- machine: dgx-1v\n  count: 1\n";
  EXPECT_EQ(refusal(pool), "accepted");
  EXPECT_EQ(refusal("pools:\n- count: 1\n"), ":2: key machine is missing");
  EXPECT_EQ(refusal("pools:\n- machine: dgx-1v\n"), ":2: key count is missing");
  EXPECT_THAT(refusal("pools:\n- machine: dgx-9\n  count: 1\n"),
              StartsWith(":2: machine: unknown machine \"dgx-9\"; known: a10-1,"));
  EXPECT_EQ(refusal("pools:\n- machine: dgx-1v\n  count: 0\n"), ":3: count: is \"0\"; allowed: 1 to 1000000");
  EXPECT_EQ(refusal("pools:\n- machine: dgx-1v\n  count: many\n"), ":3: count: is \"many\"; allowed: 1 to 1000000");
  EXPECT_EQ(
      refusal(pool + "  colour: red\n"),
      ":4: unknown key \"colour\"; known: machine, count, prefix, model, cpu, memory, pods, kubelet, mode, labels, "
      "rack_size, rack_label");
  EXPECT_EQ(refusal(pool + "  count: 2\n"), ":4: key \"count\" twice");
  EXPECT_EQ(refusal(pool + "  prefix: A_b\n"),
            ":4: prefix: is \"A_b\"; allowed: up to 48 small letters, digits, '-' and '.'");
  EXPECT_EQ(refusal(pool + "  mode: strict\n"), ":4: mode: is \"strict\"; allowed: predicted, enforced");
  EXPECT_EQ(refusal(pool + "  mode: enforced\n  kubelet: mode=enforced\n"),
            ":5: kubelet: mode stands outside of it, too");
  EXPECT_EQ(refusal(pool + "  kubelet: mode=enforced\n  mode: enforced\n"), ":5: mode: stands in kubelet, too");
  EXPECT_THAT(refusal(pool + "  kubelet: {polcy: none}\n"), StartsWith(":4: kubelet: unknown key \"polcy\"; known:"));
  EXPECT_EQ(refusal(pool + "  kubelet: [none]\n"), ":4: kubelet: is no text");
  EXPECT_THAT(refusal(pool + "  kubelet: {cpu: static, cpu-options: align-by-socket:true, policy: single-numa-node}\n"),
              StartsWith(":2: kubelet does not start with both align-by-socket"));
  EXPECT_EQ(refusal(pool + "  labels: [a]\n"), ":4: labels: is no map of labels");
  EXPECT_EQ(refusal(pool + "  labels: {a: [b]}\n"), ":4: labels: has a label that is no text");
  EXPECT_THAT(refusal(pool + "  cpu: lots\n"), StartsWith(":2: node \"dgx-1v\": cpu: "));
  EXPECT_EQ(refusal(pool + "  rack_label: a/b\n"), ":2: rack_label goes with rack_size");
  EXPECT_EQ(refusal(pool + "nodes: 4\n"), ":4: unknown key; known: pools");
  EXPECT_EQ(refusal("pools: 4\n"), ":1: pools is no list of pools");
  EXPECT_EQ(refusal("pools: []\n"), ":1: pools is no list of pools");
  EXPECT_EQ(refusal("pools:\n- dgx-1v:4\n"), ":2: no pool; allowed: a map with machine and count");
  EXPECT_THAT(refusal("pools: [\n"), HasSubstr("not valid YAML"));
  EXPECT_EQ(refusal(pool + "---\n" + pool), ": 2 YAML documents; allowed: one");
}

TEST(PoolFile, ShippedClustersAreRead) {
  const ClusterFile file =
      load(mortise::test::source_dir() + "/config/clusters/mixed-v100.yaml", {.trace_models = true});
  ASSERT_EQ(file.nodes.size(), 64U);
  std::size_t with_nvlinks = 0;
  for (const placement::NodeSpec& node : file.nodes) {
    EXPECT_EQ(node.gpus, 8);
    EXPECT_EQ(node.model, "V100M32");
    ASSERT_NE(node.topology, nullptr);
    if (node.topology->graph().link(0, 1).nvlinks > 0) ++with_nvlinks;
  }
  EXPECT_EQ(with_nvlinks, 32U);
  EXPECT_EQ(file.labels[31].at("topology.kubernetes.io/rack"), "dgx-1v-rack-003");
}

TEST(CsvTopology, NodesGetTheOnlyMachineOfTheirModelAndNumber) {
  const test::TempFile csv(
      "sn,cpu_milli,memory_mib,gpu,model\n"
      "a,104000,524288,2,T4\nb,96000,393216,4,T4\nc,96000,393216,8,G2\nd,96000,786432,8,V100M32\ne,8000,1024,0,\n"
      "f,16000,122880,2,P100\ng,64000,262144,2,P100\n");
  const ClusterFile plain = load(csv.path());
  for (const placement::NodeSpec& node : plain.nodes) EXPECT_EQ(node.topology, nullptr);

  const ClusterFile file = load(csv.path(), {.csv_topology = true});
  ASSERT_NE(file.nodes[0].topology, nullptr);
  EXPECT_EQ(file.nodes[0].topology->gpus(), 2);
  EXPECT_EQ(file.nodes[0].model, "T4") << "the CSV's own spelling stays";
  ASSERT_NE(file.nodes[1].topology, nullptr);
  EXPECT_EQ(file.nodes[1].topology->gpus(), 4);
  EXPECT_EQ(file.nodes[2].topology, nullptr) << "not in the catalogue";
  EXPECT_EQ(file.nodes[3].topology, nullptr) << "dgx-1v or v100-pcie-8";
  EXPECT_EQ(file.nodes[4].topology, nullptr);
  ASSERT_NE(file.nodes[5].topology, nullptr);
  EXPECT_EQ(file.nodes[5].topology, file.nodes[6].topology) << "CPUs and memory are the node's, not the machine's";
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("count GPUs only: 2 (first: \"c\")")));
  EXPECT_NE(file.catalogue_digest, 0U);
  EXPECT_EQ(plain.catalogue_digest, 0U);
  EXPECT_THAT(load_cluster_file("t4-2:1", {.csv_topology = true}).message(),
              HasSubstr("allowed with topology from the"));
}

}  // namespace
}  // namespace mortise::kube
