// Published matrices against what they say, where ../shared is there.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scheduler/topology/graph.h"
#include "scheduler/topology/sources/topo_matrix.h"
#include "tests/support/shared_data.h"

namespace mortise::topology {
namespace {

using nlohmann::json;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void expect_gpus(const Machine& machine, const json& expected) {
  ASSERT_EQ(machine.gpus.size(), expected.at("gpus").size());
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const Gpu& gpu = machine.gpus[i];
    const json& want = expected.at("gpus")[i];
    EXPECT_EQ(gpu.index, want.at("index"));
    EXPECT_EQ(gpu.cpus.has_value(), !want.at("cpu_affinity").is_null());
    if (gpu.cpus) {
      json ranges = json::array();
      for (const CpuRange& range : *gpu.cpus) ranges.push_back({range.first, range.last});
      EXPECT_EQ(ranges, want.at("cpu_ranges"));
    }
    EXPECT_EQ(gpu.numa.empty() ? json() : json(gpu.numa.front()), want.at("numa_affinity"));
    json memory;
    for (const NumaNode& node : machine.numa) {
      if (node.memory_of_gpu == gpu.index) memory = node.id;
    }
    EXPECT_EQ(memory, want.at("gpu_numa_id"));
  }
}

void expect_links(const Machine& machine, const json& expected) {
  ASSERT_EQ(machine.gpu_links.size(), expected.at("gpu_pairs").size());
  for (std::size_t i = 0; i < machine.gpu_links.size(); ++i) {
    const GpuLink& link = machine.gpu_links[i];
    const json& want = expected.at("gpu_pairs")[i];
    EXPECT_EQ(link.a, want.at("a"));
    EXPECT_EQ(link.b, want.at("b"));
    EXPECT_EQ(link.nvlinks, want.at("nvlinks"));
    EXPECT_EQ(link.nvlinks > 0 ? "NV" : to_text(link.pcie), want.at("link").get<std::string>());
  }
  std::size_t cells = 0;
  for (const auto& [gpu, row] : expected.at("gpu_nic").items()) cells += row.size();
  EXPECT_EQ(machine.nic_links.size(), cells);
  for (const NicLink& link : machine.nic_links) {
    const std::string gpu = "GPU" + std::to_string(machine.gpus[static_cast<std::size_t>(link.gpu)].index);
    const std::string& nic = machine.nics[static_cast<std::size_t>(link.nic)].name;
    EXPECT_EQ(to_text(link.pcie), expected.at("gpu_nic").at(gpu).at(nic).get<std::string>()) << gpu << " " << nic;
  }
}

TEST(TopoMatrixGolden, EveryPublishedMatrixReadsAsExpected) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  std::size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared / "topologies" / "matrices")) {
    if (entry.path().extension() != ".txt") continue;
    SCOPED_TRACE(entry.path().filename().string());
    std::filesystem::path expectation = entry.path();
    expectation.replace_extension(".expect.json");
    const json expected = json::parse(read_file(expectation));
    const auto reading = read_topo_matrix(read_file(entry.path()), entry.path().filename().string());
    ASSERT_TRUE(reading.ok()) << reading.message();
    EXPECT_TRUE(reading->notes.empty()) << reading->notes.front();
    expect_gpus(reading->machine, expected);
    ASSERT_EQ(reading->machine.nics.size(), expected.at("nics").size());
    for (std::size_t i = 0; i < reading->machine.nics.size(); ++i) {
      const Nic& nic = reading->machine.nics[i];
      EXPECT_EQ(nic.name, expected.at("nics")[i].at("label"));
      EXPECT_EQ(nic.device.empty() ? json() : json(nic.device), expected.at("nics")[i].at("device"));
    }
    expect_links(reading->machine, expected);
    const auto graph = NodeGraph::build(reading->machine);
    ASSERT_TRUE(graph.ok()) << graph.message();
    EXPECT_TRUE((*graph)->check().ok()) << (*graph)->check().message();
    ++read;
  }
  EXPECT_GE(read, 25U);
}

// Pair bandwidths and go-gpuallocator's scores, computed elsewhere, of the machines whose matrices are there. Models
// are those of the systems' names.
TEST(TopoMatrixGolden, PairValuesAreThoseOfThePublishedSets) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << "no ../shared";
  const json sets = json::parse(read_file(*shared / "topologies" / "nvlink_sets.json"));
  std::size_t compared = 0;
  for (const auto& [name, system] : sets.at("systems").items()) {
    const std::filesystem::path path = *shared / "topologies" / system.at("matrix_source").get<std::string>();
    if (path.extension() != ".txt" || !std::filesystem::exists(path)) continue;
    SCOPED_TRACE(name);
    auto reading = read_topo_matrix(read_file(path), path.filename().string());
    ASSERT_TRUE(reading.ok()) << reading.message();
    const std::string file = path.filename().string();
    const bool volta = file.starts_with("dgx1v") || file.starts_with("dgx2");
    for (Gpu& gpu : reading->machine.gpus) {
      gpu.model = volta ? "V100" : file.starts_with("dgx_h100") ? "H100" : "A100";
    }
    const auto graph = NodeGraph::build(reading->machine);
    ASSERT_TRUE(graph.ok()) << graph.message();
    const int gpus = (*graph)->gpu_count();
    for (int a = 0; a < gpus; ++a) {
      for (int b = 0; b < gpus; ++b) {
        const auto row = static_cast<std::size_t>(a);
        const auto column = static_cast<std::size_t>(b);
        if (system.at("pair_gbps").is_array()) {
          EXPECT_EQ((*graph)->bandwidth().at(a, b), system.at("pair_gbps")[row][column].get<std::int64_t>() * 1000);
        }
        if (!system.contains("go_gpuallocator_besteffort")) continue;
        const json& scores = system.at("go_gpuallocator_besteffort").at("score_matrix");
        EXPECT_EQ((*graph)->plugin_scores().at(a, b), scores[row][column].get<std::int64_t>()) << a << " " << b;
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, 7U);
}

}  // namespace
}  // namespace mortise::topology
