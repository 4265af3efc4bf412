#include "scheduler/topology/sources/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "scheduler/topology/graph.h"
#include "tests/support/tree.h"

namespace mortise::topology {
namespace {

const Catalogue& catalogue() {
  static const Catalogue kCatalogue = [] {
    auto loaded = Catalogue::load(mortise::test::source_dir() + "/config/topologies");
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    return loaded ? *std::move(loaded) : Catalogue{};
  }();
  return kCatalogue;
}

std::shared_ptr<const NodeGraph> graph_of(std::string_view name) {
  const auto machine = catalogue().find(name);
  EXPECT_TRUE(machine.ok()) << machine.message();
  return machine ? *NodeGraph::build((*machine)->machine) : nullptr;
}

std::string classes_of(const NodeGraph& graph, int from) {
  std::string text;
  for (int gpu = 0; gpu < graph.gpu_count(); ++gpu) {
    if (gpu != from) text += (text.empty() ? "" : " ") + to_text(graph.link(from, gpu));
  }
  return text;
}

int cpus_of(const Machine& machine) {
  int count = 0;
  for (const NumaNode& node : machine.numa) count += node.cpus ? cpu_count(*node.cpus) : 0;
  return count;
}

TEST(Catalogue, EveryMachineHoldsTogether) {
  EXPECT_GE(catalogue().machines().size(), 20U);
  for (const CatalogueMachine& machine : catalogue().machines()) {
    SCOPED_TRACE(machine.name);
    const auto graph = NodeGraph::build(machine.machine);
    ASSERT_TRUE(graph.ok()) << graph.message();
    EXPECT_TRUE((*graph)->check().ok()) << (*graph)->check().message();
    EXPECT_FALSE(machine.machine.gpus.empty());
    // Every pair has a bandwidth: the models are in the table.
    for (int b = 1; b < (*graph)->gpu_count(); ++b) EXPECT_TRUE((*graph)->mb_per_s(0, b).has_value());
  }
}

// The published hybrid cube mesh: each V100 has six links, each P100 four; quads 0-3 and 4-7 are complete.
TEST(Catalogue, Dgx1IsTheHybridCubeMesh) {
  const auto volta = graph_of("dgx-1v");
  EXPECT_EQ(classes_of(*volta, 0), "NV1 NV1 NV2 NV2 SYS SYS SYS");
  EXPECT_EQ(classes_of(*volta, 7), "SYS SYS SYS NV1 NV2 NV1 NV2");
  for (int a = 0; a < 8; ++a) {
    int links = 0;
    for (int b = 0; b < 8; ++b) links += a == b ? 0 : volta->link(a, b).nvlinks;
    EXPECT_EQ(links, 6) << a;
  }
  // 0-3-2-1-5-6-7-4-0 uses double links only, so every pair has a way of 50 GB/s.
  EXPECT_EQ(volta->nvlink_path_mb_per_s(0, 7), 50000);
  EXPECT_EQ(cpus_of(volta->machine()), 80);
  // go-gpuallocator: GPUs 0 and 1 share a switch (50) and a link (100); 0 and 3 a host bridge (30) and two links.
  EXPECT_EQ(volta->plugin_scores().at(0, 1), 150);
  EXPECT_EQ(volta->plugin_scores().at(0, 3), 230);

  const auto pascal = graph_of("dgx-1p");
  EXPECT_EQ(classes_of(*pascal, 0), "NV1 NV1 NV1 NV1 SYS SYS SYS");
  EXPECT_EQ(pascal->mb_per_s(0, 1), 20000);
  EXPECT_EQ(pascal->plugin_scores().at(0, 2), 150);  // on the P100 machine GPUs 0 and 2 share the switch
  EXPECT_EQ(pascal->plugin_scores().at(0, 1), 130);
}

TEST(Catalogue, SwitchedMachinesHaveAllPairsAtTheWidthOfAGpu) {
  const struct {
    const char* name;
    int gpus;
    std::int64_t mb_per_s;  // ports x nominal rate of a link, one direction
  } kExpected[] = {{"dgx-2", 16, 150000},   {"dgx-a100", 8, 300000}, {"hgx-a100", 8, 300000},
                   {"dgx-h100", 8, 450000}, {"hgx-h100", 8, 450000}, {"hgx-h200", 8, 450000},
                   {"hgx-b200", 8, 900000}, {"hgx-b300", 8, 900000}, {"gb200-tray", 4, 900000}};
  for (const auto& want : kExpected) {
    SCOPED_TRACE(want.name);
    const auto graph = graph_of(want.name);
    ASSERT_EQ(graph->gpu_count(), want.gpus);
    ASSERT_EQ(graph->nvlink_domains().size(), 1U);
    for (int b = 1; b < want.gpus; ++b) {
      EXPECT_TRUE(graph->link(0, b).switched);
      EXPECT_EQ(graph->mb_per_s(0, b), want.mb_per_s);
    }
  }
}

TEST(Catalogue, DgxA100HasItsGpusOnNumaNodes3175) {
  const auto graph = graph_of("dgx-a100");
  std::vector<int> numa;
  for (const Gpu& gpu : graph->machine().gpus) numa.push_back(gpu.numa.front());
  EXPECT_EQ(numa, (std::vector<int>{3, 3, 1, 1, 7, 7, 5, 5}));
  EXPECT_EQ(to_text(*graph->machine().gpus[0].cpus), "48-63,176-191");
  EXPECT_EQ(graph->nearest_nics(4), (std::vector<int>{4, 5}));
  EXPECT_EQ(graph->nic_link(4, 4), LinkClass::kPxb);
  EXPECT_EQ(cpus_of(graph->machine()), 256);
}

TEST(Catalogue, EveryHgxGpuHasItsOwnNearestNic) {
  for (const char* name : {"dgx-h100", "hgx-h100", "hgx-h200", "hgx-b200", "hgx-b300"}) {
    const auto graph = graph_of(name);
    for (int gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(graph->nearest_nics(gpu), std::vector<int>{gpu}) << name;
  }
  EXPECT_EQ(graph_of("hgx-h100")->nic_link(0, 0), LinkClass::kPix);
  EXPECT_EQ(graph_of("dgx-h100")->nic_link(0, 0), LinkClass::kPxb);
}

TEST(Catalogue, BridgesJoinPairsOfPcieGpus) {
  EXPECT_EQ(classes_of(*graph_of("a100-pcie-8"), 0), "NODE NODE NODE SYS SYS SYS SYS");
  EXPECT_EQ(classes_of(*graph_of("a100-pcie-8-bridged"), 0), "NV12 NODE NODE SYS SYS SYS SYS");
  EXPECT_EQ(classes_of(*graph_of("a100-pcie-4-bridged"), 3), "SYS SYS NV12");
  EXPECT_EQ(graph_of("a100-pcie-8-bridged")->nvlink_domains().size(), 4U);
  EXPECT_EQ(classes_of(*graph_of("hgx-a100-4"), 0), "NV4 NV4 NV4");
  EXPECT_FALSE(graph_of("hgx-a100-4")->link(0, 3).switched);
}

TEST(Catalogue, Gh200HasItsGpuMemoryOnANodeWithoutCpus) {
  const auto graph = graph_of("gh200");
  ASSERT_EQ(graph->machine().numa.size(), 2U);
  EXPECT_EQ(graph->machine().numa[1].memory_of_gpu, 0);
  EXPECT_EQ(graph->machine().gpus[0].numa, std::vector<int>{0});
}

TEST(Catalogue, UnknownNamesListTheKnownOnes) {
  const auto found = catalogue().find("dgx-9");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.message(), testing::StartsWith("unknown machine \"dgx-9\"; known: a10-1, a10-4, a100-pcie-4,"));
}

std::string labelled(const std::map<std::string, std::string>& labels) {
  const auto reading = read_node_labels(labels, &catalogue());
  EXPECT_TRUE(reading.ok()) << reading.message();
  if (!reading || !*reading) return "nothing";
  const Machine& machine = (*reading)->machine;
  return std::to_string(machine.gpus.size()) + " " + (machine.gpus.empty() ? "" : machine.gpus[0].model) + " " +
         std::to_string(machine.gpu_links.size()) + " links";
}

TEST(NodeLabels, ProductAndCountNameAMachine) {
  EXPECT_EQ(labelled({{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/gpu.count", "8"}}),
            "8 NVIDIA-H100-80GB-HBM3 28 links");
  // The vendor's product name goes first, and sharing does not change the machine.
  EXPECT_EQ(labelled({{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-SHARED"},
                      {"nvidia.com/gpu.count", "8"},
                      {"nvidia.com/gpu.machine", "DGXA100-920-23687-2530-000"}}),
            "8 NVIDIA-A100-SXM4-80GB 28 links");
  EXPECT_EQ(labelled({{"nvidia.com/gpu.product", "Quadro-Z"}, {"nvidia.com/gpu.count", "3"}}), "3 Quadro-Z 0 links");
  EXPECT_EQ(labelled({{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, {"nvidia.com/gpu.count", "56"}}),
            "0  0 links");
  EXPECT_EQ(labelled({{"kubernetes.io/hostname", "a"}}), "nothing");
}

TEST(NodeLabels, ABadCountIsRefused) {
  const auto reading =
      read_node_labels({{"nvidia.com/gpu.product", "Tesla-T4"}, {"nvidia.com/gpu.count", "many"}}, nullptr);
  ASSERT_FALSE(reading.ok());
  EXPECT_EQ(reading.message(), "label nvidia.com/gpu.count is \"many\"; allowed: 0..64");
}

class CatalogueFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("catalogue_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string refusal() {
    const auto loaded = Catalogue::load(folder_);
    EXPECT_FALSE(loaded.ok());
    if (loaded) return {};
    const std::string& message = loaded.message();
    return message.substr(std::min(message.size(), folder_.string().size() + 1));
  }

  std::filesystem::path folder_;
};

TEST_F(CatalogueFolder, MistakesNameFileAndLine) {
  write("a.yaml", "name: a\ndescription: d\ntopology: gpu:1\ncolour: red\n");
  EXPECT_THAT(refusal(), testing::StartsWith("a.yaml:4: unknown key \"colour\"; known: name,"));
  write("a.yaml", "name: a\ndescription: d\n");
  EXPECT_EQ(refusal(), "a.yaml:1: key topology is missing");
  write("a.yaml", "name: a\ndescription: d\ntopology: gpu:x\n");
  EXPECT_THAT(refusal(), testing::StartsWith("a.yaml: topology:1: gpu is \"x\""));
  write("a.yaml", "name: b\ndescription: d\ntopology: gpu:1\n");
  EXPECT_EQ(refusal(), "a.yaml: the machine is named \"b\"; allowed: the name of the file");
  write("a.yaml", "name: [a\n");
  EXPECT_THAT(refusal(), testing::HasSubstr("not YAML"));
}

TEST_F(CatalogueFolder, TwoMachinesMayNotClaimOneLabel) {
  write("a.yaml", "name: a\ndescription: d\ntopology: gpu:2\nproducts: [T4]\n");
  write("b.yaml", "name: b\ndescription: d\ntopology: gpu:2\nproducts: [T4]\n");
  EXPECT_EQ(refusal(), " \"2 x T4\" is claimed by a and b");
}

TEST_F(CatalogueFolder, AMissingFolderIsRefused) {
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(refusal(), testing::HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace mortise::topology
