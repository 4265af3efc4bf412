// Node objects of real clusters, in the folder of published test data. Expected values: the rows of its INDEX.csv, and
// for what a row does not say, the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/yaml_text.h"
#include "tests/support/shared_data.h"

namespace mortise::kube {
namespace {

struct Expected {
  std::string name;
  std::int32_t gpus;
  std::string model;
  MilliCpu cpu;
  std::int32_t pods;
};

// A file that shows labels only has no status, and so neither CPU nor GPUs; its pods are the default.
const std::map<std::string, std::vector<Expected>>& expected_files() {
  static const std::map<std::string, std::vector<Expected>> kFiles = {
      {"aks-t4-no-gpu-resource.yaml", {{"aks-gpu-vmss000000", 0, "", 4000, 30}}},
      {"amd-mi300x-labels.yaml", {{"node-amd", 0, "", 0, 110}}},
      {"clique-4workers-list.yaml",
       {{"worker-0", 0, "", 0, 110},
        {"worker-1", 0, "", 0, 110},
        {"worker-2", 0, "", 0, 110},
        {"worker-3", 0, "", 0, 110}}},
      {"eks-g5-8xlarge-efa.yaml", {{"ip-node-efa", 1, "", 31'850, 234}}},
      {"h100-8-gfd-labels.yaml", {{"node-xe9680", 0, "NVIDIA-H100-80GB-HBM3", 0, 110}}},
      {"hami-a100-gpu0-registered.yaml", {{"node-hami-a100", 0, "", 0, 110}}},
      {"mig-mixed-a100-40gb-3inst.yaml", {{"node-gpu-a", 0, "NVIDIA-A100-SXM4-40GB", 12'000, 110}}},
      {"mig-mixed-a100-40gb-7g.yaml", {{"node-gpu-a", 0, "NVIDIA-A100-SXM4-40GB", 12'000, 110}}},
      {"mig-mixed-label-vs-resource-mismatch.yaml", {{"node-a100-6", 0, "", 0, 110}}},
      {"mig-mixed-stale-gpu2.yaml", {{"node-mig-1", 2, "", 64'000, 160}}},
      {"mig-single-labels-docs.json", {{"node-mig-single", 0, "NVIDIA-H100-80GB-HBM3", 0, 110}}},
      {"ocp-time-slicing-t4-labels.json", {{"node-ocp-t4", 0, "Tesla-T4-SHARED", 0, 110}}},
      {"openb-trace-14-models.yaml",
       {{"openb-node-0000", 2, "P100", 64'000, 1001},
        {"openb-node-0022", 8, "G3", 128'000, 1001},
        {"openb-node-0023", 8, "V100M32", 96'000, 1001},
        {"openb-node-0025", 4, "V100M16", 32'000, 1001},
        {"openb-node-0026", 8, "G2", 96'000, 1001},
        {"openb-node-0035", 4, "T4", 96'000, 1001},
        {"openb-node-0036", 2, "T4", 104'000, 1001},
        {"openb-node-0143", 1, "V100M16", 8000, 1001},
        {"openb-node-0231", 8, "V100M16", 64'000, 1001},
        {"openb-node-0247", 4, "V100M32", 48'000, 1001},
        {"openb-node-0292", 1, "P100", 8000, 1001},
        {"openb-node-1032", 1, "A10", 128'000, 1001}}},
      {"openshift-no-gpu-worker.json", {{"node-nogpu-0", 0, "", 3500, 250}}},
      {"pai-nodelist-4gpu-rdma.json", {{"test_node_0", 4, "", 24'000, 110}}},
      {"runai-fraction-2gpu.yaml", {{"node-gpu-b", 2, "Tesla-T4", 32'000, 110}}},
      {"time-slicing-mig-shared128.yaml", {{"node-p5", 0, "", 191'450, 100}}},
      {"time-slicing-t4-shared-suffix.yaml", {{"node-time-slicing-t4-shar", 16, "Tesla-T4-SHARED", 0, 110}}},
      {"unhealthy-alloc0-cap16.yaml", {{"node-gpu01", 0, "", 48'000, 110}}},
      {"v100-8-mps-enabled-old-label.json", {{"node-kind-worker", 0, "Tesla-V100-SXM2-16GB-N", 0, 110}}},
      {"vgpu-a16-4q-rke2.json", {{"node-vgpu-a16", 1, "NVIDIA-A16-4Q", 2000, 110}}},
      {"vgpu-grid-a100-labels-list.json",
       {{"node-vgpu-0", 0, "GRID-A100-40C", 0, 110},
        {"node-vgpu-1", 0, "GRID-A100-4C", 0, 110},
        {"node-vgpu-2", 0, "GRID-A100-4C", 0, 110},
        {"node-vgpu-3", 0, "GRID-A100-4C", 0, 110}}},
  };
  return kFiles;
}

struct ExpectedLabel {
  std::string file;
  std::string key;
  std::vector<std::string> values;  ///< by node
};

const std::vector<ExpectedLabel>& expected_labels() {
  static const std::vector<ExpectedLabel> kLabels = {
      {"clique-4workers-list.yaml",
       "nvidia.com/gpu.clique",
       {"00000000-0000-0000-0000-0000000000ab.0", "00000000-0000-0000-0000-0000000000ab.1",
        "00000000-0000-0000-0000-0000000000cd.0", "00000000-0000-0000-0000-0000000000cd.1"}},
      {"amd-mi300x-labels.yaml", "amd.com/gpu.vram", {"192G"}},
      {"h100-8-gfd-labels.yaml", "nvidia.com/gpu.count", {"8"}},
      {"hami-a100-gpu0-registered.yaml", "gpu", {"on"}},
      {"mig-mixed-label-vs-resource-mismatch.yaml", "nvidia.com/mig-3g.21gb.count", {"16"}},
      {"mig-single-labels-docs.json", "nvidia.com/gpu.count", {"1"}},
      {"mig-single-labels-docs.json", "nvidia.com/mig.config", {"all-disabled"}},
      {"mig-single-labels-docs.json", "nvidia.com/mig.strategy", {"single"}},
      {"ocp-time-slicing-t4-labels.json", "nvidia.com/gpu.memory", {"16106127360"}},
      {"ocp-time-slicing-t4-labels.json", "nvidia.com/gpu.replicas", {"8"}},
      {"time-slicing-t4-shared-suffix.yaml", "nvidia.com/gpu.count", {"4"}},
      {"v100-8-mps-enabled-old-label.json", "nvidia.com/gpu.count", {"8"}},
      {"v100-8-mps-enabled-old-label.json", "nvidia.com/sharing.mps.enabled", {"false"}},
      {"vgpu-a16-4q-rke2.json", "nvidia.com/vgpu.present", {"true"}},
  };
  return kLabels;
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class NodeFixtures : public testing::Test {
 protected:
  void SetUp() override {
    const auto shared = test::shared_dir();
    if (!shared) GTEST_SKIP() << "the folder of published test data is not there";
    folder_ = *shared / "fixtures" / "nodes";
  }

  std::filesystem::path folder_;
};

void check_nodes(const std::string& file, const std::vector<placement::NodeSpec>& nodes) {
  const auto expected = expected_files().find(file);
  ASSERT_NE(expected, expected_files().end()) << "no expectation for " << file;
  ASSERT_EQ(nodes.size(), expected->second.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Expected& want = expected->second[i];
    SCOPED_TRACE(want.name);
    EXPECT_EQ(nodes[i].name, want.name);
    EXPECT_EQ(nodes[i].gpus, want.gpus);
    EXPECT_EQ(nodes[i].model, want.model);
    EXPECT_EQ(nodes[i].cpu, want.cpu);
    EXPECT_EQ(nodes[i].pods, want.pods);
    EXPECT_TRUE(nodes[i].schedulable);
  }
}

TEST_F(NodeFixtures, EveryFileIsReadAsItsRowSays) {
  std::size_t files = 0;
  for (const std::filesystem::path& path : files_of(folder_)) {
    SCOPED_TRACE(path.filename());
    const auto cluster = load_cluster_file(path.string());
    std::string found = path.filename().string() + ":";
    if (cluster) {
      for (const placement::NodeSpec& node : cluster->nodes) {
        found += " " + node.name + " " + std::to_string(node.gpus) + "x" + (node.model.empty() ? "-" : node.model);
      }
      for (const std::string& note : cluster->notes) found += " [" + note + "]";
      check_nodes(path.filename().string(), cluster->nodes);
    } else {
      found += " refused: " + cluster.message();
      ADD_FAILURE() << cluster.message();
    }
    std::printf("%s\n", found.c_str());
    ++files;
  }
  EXPECT_EQ(files, expected_files().size());
}

std::vector<Node> decoded_nodes(const std::filesystem::path& path) {
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<Node> nodes;
  // JSON is YAML, too.
  const Status read = read_yaml_text(text, path.string(), [&](const nlohmann::json& document, int) -> Status {
    const bool is_list = document.contains("items");
    const nlohmann::json items = is_list ? document["items"] : nlohmann::json::array({document});
    for (const nlohmann::json& item : items) {
      const auto node = decode_node(item);
      if (!node) return node.error();
      nodes.push_back(*node);
    }
    return ok_status();
  });
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.message());
  return nodes;
}

TEST_F(NodeFixtures, LabelsStayAsWritten) {
  for (const ExpectedLabel& label : expected_labels()) {
    SCOPED_TRACE(label.file + " " + label.key);
    const std::vector<Node> nodes = decoded_nodes(folder_ / label.file);
    ASSERT_EQ(nodes.size(), label.values.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto found = nodes[i].labels.find(label.key);
      ASSERT_NE(found, nodes[i].labels.end());
      EXPECT_EQ(found->second, label.values[i]);
    }
  }
}

TEST_F(NodeFixtures, PublishedNodeListIsReadWhole) {
  const auto cluster = load_cluster_file((folder_ / "../../traces/openb/openb_node_list_gpu_node.csv").string());
  ASSERT_TRUE(cluster.ok()) << cluster.message();
  // 1,213 nodes with 6,212 GPUs, 107,018 cores and 503,828,480 MiB, says the study.
  std::int64_t gpus = 0;
  MilliCpu cpu = 0;
  Bytes memory = 0;
  for (const placement::NodeSpec& node : cluster->nodes) {
    gpus += node.gpus;
    cpu += node.cpu;
    memory += node.memory;
  }
  EXPECT_EQ(cluster->nodes.size(), 1213U);
  EXPECT_EQ(gpus, 6212);
  EXPECT_EQ(cpu, 107'018'000);
  EXPECT_EQ(memory, 503'828'480 * kMiB);
}

TEST_F(NodeFixtures, PublishedNodeRanksCoverThePublishedNodes) {
  const auto ranks = load_node_ranks((folder_ / "../../golden/noderank_default_seed42.txt").string());
  ASSERT_TRUE(ranks.ok()) << ranks.message();
  EXPECT_EQ(ranks->size(), 1213U);
  EXPECT_EQ(ranks->at("openb-node-0000"), 601U);
  const auto cluster = load_cluster_file((folder_ / "../../traces/openb/openb_node_list_gpu_node.csv").string());
  ASSERT_TRUE(cluster.ok());
  EXPECT_TRUE(build_cluster(*cluster, &*ranks, 42).ok());
}

}  // namespace
}  // namespace mortise::kube
