// Published NodeResourceTopology and Node objects together, where ../shared is there: each report with a node of its
// name, and each node alone. Expectations were read off the files by hand; the test also prints what it found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "scheduler/kube/objects/cluster_file.h"
#include "tests/support/shared_data.h"
#include "tests/unit/kube/temp_file.h"

namespace mortise::kube {
namespace {

using placement::NodeTopology;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// "4 GPUs 0x3 0xc single-numa-node/container": the NUMA classes as masks, then kubelet.
std::string text_of(const NodeTopology* topology) {
  if (topology == nullptr) return "none";
  std::ostringstream text;
  text << topology->gpus() << " GPUs" << std::hex;
  for (const placement::GpuMask gpus : topology->numa_classes()) text << " 0x" << gpus;
  const topology::KubeletConfig& kubelet = topology->kubelet();
  text << " " << to_text(kubelet.policy) << (kubelet.scope == topology::TopologyScope::kPod ? "/pod" : "/container");
  return text.str();
}

struct ReportFacts {
  std::string node;
  std::string gpus;      ///< allocatable of the node
  std::string topology;  ///< as text_of writes it
  std::string note;      ///< part of a note; empty: there is none
};

const std::map<std::string, ReportFacts> kReports = {
    {"doc-gpu-2zones-no-allocatable.yaml", {"gpu-node-01", "4", "4 GPUs 0x3 0xc single-numa-node/container", ""}},
    {"fake-nrt-kwok-numa.yaml", {"kwok-numa-0", "8", "8 GPUs 0xf 0xf0 single-numa-node/container", ""}},
    // These tell of no GPUs, so nothing can be told of those that the node has.
    {"koordinator-annotated.yaml", {"node1", "2", "none", ""}},
    {"nfd-doc-sample.yaml", {"node1", "2", "none", ""}},
    {"readme-A-no-available.yaml", {"worker-node-A", "2", "none", ""}},
    {"worker-node-A.yaml", {"worker-node-a", "2", "none", ""}},
    {"v1alpha1-4zones-nics.yaml", {"node1", "2", "none", "topologyPolicies has \"SingleNUMANode\""}},
    // The last resource of its second zone has lost its name.
    {"nfd-1312-list-uncut.yaml",
     {"ip-node-nrt", "2", "none", "NodeResourceTopology left out: zones[1].resources[0].name: is missing"}},
};

TEST(TopologyFixtures, EveryPublishedReportWithItsNode) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "fixtures" / "nrt")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    ASSERT_TRUE(kReports.contains(name)) << "no expectation";
    const ReportFacts& want = kReports.at(name);
    const test::TempFile file(read_file(entry.path()) + "\n---\nkind: Node\nmetadata: {name: " + want.node +
                              "}\nstatus: {allocatable: {cpu: '8', nvidia.com/gpu: '" + want.gpus + "'}}\n");
    const auto cluster = load_cluster_file(file.path());
    ASSERT_TRUE(cluster.ok()) << cluster.message();
    ASSERT_EQ(cluster->nodes.size(), 1U);
    const std::string found = text_of(cluster->nodes[0].topology.get());
    std::printf("%s: %s\n", name.c_str(), found.c_str());
    EXPECT_EQ(found, want.topology);
    if (want.note.empty()) {
      EXPECT_THAT(cluster->notes, testing::IsEmpty());
    } else {
      EXPECT_THAT(cluster->notes, testing::Contains(testing::HasSubstr(want.note)));
    }
    ++seen;
  }
  EXPECT_EQ(seen, kReports.size());
}

// All other nodes of the folder have no GPUs in their status, or nothing that tells their machine.
const std::map<std::string, std::string> kNodes = {
    // Two T4 on a virtual machine: those of t4-2, one per NUMA node; kubelet is not told of.
    {"runai-fraction-2gpu.yaml", "2 GPUs 0x1 0x2 none/container"},
};

TEST(TopologyFixtures, EveryPublishedNodeAlone) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "fixtures" / "nodes")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto cluster = load_cluster_file(entry.path().string());
    ASSERT_TRUE(cluster.ok()) << cluster.message();
    for (const placement::NodeSpec& node : cluster->nodes) {
      const auto want = kNodes.find(name);
      EXPECT_EQ(text_of(node.topology.get()), want == kNodes.end() ? "none" : want->second) << node.name;
    }
    ++seen;
  }
  EXPECT_EQ(seen, 22U);
}

}  // namespace
}  // namespace mortise::kube
