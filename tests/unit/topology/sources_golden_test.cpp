// Published NodeResourceTopology objects and hwloc XML files, where ../shared is there. Expectations were read off the
// files by hand; the test also prints what it found.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scheduler/kube/objects/yaml_text.h"
#include "scheduler/topology/graph.h"
#include "scheduler/topology/sources/hwloc_xml.h"
#include "scheduler/topology/sources/nrt_json.h"
#include "tests/support/shared_data.h"

namespace mortise::topology {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string numa_list(const Machine& machine) {
  std::string text;
  for (const NumaNode& node : machine.numa) text += (text.empty() ? "" : ",") + std::to_string(node.id);
  return text;
}

std::string gpu_list(const Machine& machine) {
  std::string text;
  for (const Gpu& gpu : machine.gpus) {
    text += (text.empty() ? "" : " ") + std::to_string(gpu.index) + "@";
    for (const int id : gpu.numa) text += std::to_string(id);
  }
  return text;
}

std::string kubelet_text(const KubeletFacts& kubelet) {
  const std::string scope = !kubelet.scope ? "-" : *kubelet.scope == TopologyScope::kPod ? "pod" : "container";
  return (kubelet.policy ? std::string(to_text(*kubelet.policy)) : "-") + "/" + scope;
}

struct NrtFacts {
  std::string node;
  std::string kubelet;
  std::string numa;
  std::string gpus;
  std::string resources;  // of the first zone: capacity/allocatable/available
  std::size_t notes = 0;
};

const std::map<std::string, NrtFacts> kNrt = {
    {"doc-gpu-2zones-no-allocatable.yaml",
     {"gpu-node-01", "single-numa-node/container", "0,1", "0@0 1@0 2@1 3@1",
      "cpu 24000/24000/24000, memory 103079215104/103079215104/103079215104, nvidia.com/gpu 2/2/2"}},
    {"fake-nrt-kwok-numa.yaml",
     {"kwok-numa-0", "single-numa-node/container", "0,1", "0@0 1@0 2@0 3@0 4@1 5@1 6@1 7@1",
      "nvidia.com/gpu 4/4/4, cpu 16000/16000/16000, memory 137438953472/137438953472/137438953472"}},
    {"koordinator-annotated.yaml",
     {"node1", "single-numa-node/pod", "0,1,2,3", "", "cpu 20000/15000/10000, vendor/nic1 3/3/3"}},
    {"nfd-doc-sample.yaml",
     {"node1", "single-numa-node/container", "0,1,2", "", "cpu 20000/16000/10000, vendor/nic1 3/3/3"}},
    // "numa-node-0" and "numa-node-1".
    {"readme-A-no-available.yaml",
     {"worker-node-A", "single-numa-node/container", "0,1", "",
      "cpu 4000/3000/3000, example.com/deviceA 1/1/1, example.com/deviceB 2/2/2"}},
    // "SingleNUMANode" is none of the policy words.
    {"v1alpha1-4zones-nics.yaml", {"node1", "-/-", "0,1,2,3", "", "cpu 20000/15000/10000, vendor/nic1 3/3/3", 1}},
    {"worker-node-A.yaml",
     {"worker-node-a", "single-numa-node/container", "0,1", "",
      "cpu 4000/3000/3000, example.com/deviceA 1/1/1, example.com/deviceB 2/2/2"}},
};

std::string resources_text(const Zone& zone) {
  std::string text;
  for (const ZoneResource& resource : zone.resources) {
    text += (text.empty() ? "" : ", ") + resource.name + " " + std::to_string(resource.capacity) + "/" +
            std::to_string(resource.allocatable) + "/" + std::to_string(resource.available);
  }
  return text;
}

Result<std::vector<NodeTopologyReport>> read_nrt_yaml(const std::filesystem::path& path) {
  std::string text;
  const Status converted =
      kube::read_yaml_text(read_file(path), path.filename().string(), [&](const nlohmann::json& document, int) {
        text = document.dump();
        return ok_status();
      });
  if (!converted) return converted.error();
  return read_node_topologies(text, path.filename().string());
}

TEST(NrtGolden, EveryPublishedObjectReadsRightlyOrIsRefused) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "fixtures" / "nrt")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto reports = read_nrt_yaml(entry.path());
    ++seen;
    if (name == "nfd-1312-list-uncut.yaml") {
      // Its last resource has lost name and capacity.
      ASSERT_FALSE(reports.ok());
      std::cout << reports.message() << "\n";
      EXPECT_EQ(reports.message(), name + ": items[0].zones[1].resources[0].name: is missing");
      continue;
    }
    ASSERT_TRUE(kNrt.contains(name)) << "no expectation";
    ASSERT_TRUE(reports.ok()) << reports.message();
    ASSERT_EQ(reports->size(), 1U);
    const NodeTopologyReport& report = reports->front();
    const NrtFacts& want = kNrt.at(name);
    std::cout << name << ": node " << report.reading.node << ", kubelet "
              << kubelet_text(report.reading.machine.kubelet) << ", NUMA " << numa_list(report.reading.machine)
              << ", GPUs " << gpu_list(report.reading.machine) << "\n";
    EXPECT_EQ(report.reading.node, want.node);
    EXPECT_EQ(kubelet_text(report.reading.machine.kubelet), want.kubelet);
    EXPECT_EQ(numa_list(report.reading.machine), want.numa);
    EXPECT_EQ(gpu_list(report.reading.machine), want.gpus);
    EXPECT_EQ(resources_text(report.zones.front()), want.resources);
    EXPECT_EQ(report.reading.notes.size(), want.notes);
    EXPECT_FALSE(report.reading.machine.gpus_numbered);
  }
  EXPECT_EQ(seen, 8U);
}

TEST(NrtGolden, ZoneCostsAreNumaDistances) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  const auto reports = read_nrt_yaml(*shared / "fixtures" / "nrt" / "fake-nrt-kwok-numa.yaml");
  ASSERT_TRUE(reports.ok()) << reports.message();
  const Machine& machine = reports->front().reading.machine;
  EXPECT_EQ(machine.numa[0].distances, (std::vector<NumaDistance>{{0, 10}, {1, 21}}));
  EXPECT_EQ(machine.numa[1].distances, (std::vector<NumaDistance>{{0, 21}, {1, 10}}));
}

struct HwlocFacts {
  std::string numa;
  std::string gpus;
  std::string model;  // of GPU 0
  std::string nics;
  std::string classes;  // GPU 0 to each other GPU
  std::size_t notes = 0;
};

const std::map<std::string, HwlocFacts> kHwloc = {
    // GPUs 0 and 1 below one switch of socket 0, 2 and 3 of socket 8. Verbs names replace those of network devices.
    {"coral-lassen.xml",
     {"0,8", "0@0 1@0 2@8 3@8", "Tesla V100-SXM2-16GB", "mlx5_0 mlx5_1 enP5p1s0f0 enP5p1s0f1 mlx5_2 mlx5_3",
      "PIX SYS SYS"}},
    {"cts1-pascal.xml", {"0,1", "0@0 1@0", "Tesla P100-PCIE-16GB", "mlx5_0 enp12s0f0 enp12s0f1", "PIX"}},
    {"eas-tioga.xml",
     {"0,1,2,3", "0@3 1@3 2@1 3@1 4@0 5@0 6@2 7@2", "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2",
      "hsi2 ens2 hsi1 hsi3 hsi0", "NODE SYS SYS SYS SYS SYS SYS", 1}},
    {"epyc-corona.xml", {"0,1,2,3,4,5,6,7", "0@1 1@2 2@5 3@7", "Vega 20", "enp3s0f0 enp3s0f1 mlx5_0", "SYS SYS SYS"}},
    // hwloc ran without its GPU plugins.
    {"nvidia-dgx-gb10.xml", {"0", "", "", "", ""}},
    // Two GPUs below each switch, two switches below one more, two of those on each socket; six links to the
    // NVSwitches.
    {"nvidiaDGX2.xml",
     {"0,1", "0@0 1@0 2@0 3@0 4@0 5@0 6@0 7@0 8@1 9@1 10@1 11@1 12@1 13@1 14@1 15@1", "Tesla V100-SXM3-32GB-H", "",
      "NV6 NV6 NV6 NV6 NV6 NV6 NV6 SYS SYS SYS SYS SYS SYS SYS SYS", 1}},
};

TEST(HwlocGolden, EveryPublishedFileReadsRightly) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "fixtures" / "topology-xml")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    ASSERT_TRUE(kHwloc.contains(name)) << "no expectation";
    const HwlocFacts& want = kHwloc.at(name);
    const auto reading = read_hwloc_xml(read_file(entry.path()), name);
    ASSERT_TRUE(reading.ok()) << reading.message();
    const Machine& machine = reading->machine;
    const auto graph = NodeGraph::build(machine);
    ASSERT_TRUE(graph.ok()) << graph.message();
    EXPECT_TRUE((*graph)->check().ok()) << (*graph)->check().message();
    std::string nics;
    for (const Nic& nic : machine.nics) nics += (nics.empty() ? "" : " ") + nic.name;
    std::string classes;
    for (int gpu = 1; gpu < (*graph)->gpu_count(); ++gpu) {
      const std::string link = to_text((*graph)->link(0, gpu));
      classes += (gpu > 1 ? " " : "") + (link.empty() ? "?" : link);
    }
    std::cout << name << ": NUMA " << numa_list(machine) << ", GPUs " << gpu_list(machine) << ", NICs " << nics
              << ", links of GPU 0 " << classes << "\n";
    EXPECT_EQ(numa_list(machine), want.numa);
    EXPECT_EQ(gpu_list(machine), want.gpus);
    EXPECT_EQ(machine.gpus.empty() ? "" : machine.gpus[0].model, want.model);
    EXPECT_EQ(nics, want.nics);
    EXPECT_EQ(classes, want.classes);
    EXPECT_EQ(reading->notes.size(), want.notes);
    ++seen;
  }
  EXPECT_EQ(seen, 6U);
}

}  // namespace
}  // namespace mortise::topology
