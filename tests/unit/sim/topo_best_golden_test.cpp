// `mortise topo --best` on published matrices against their best sets, found elsewhere by trying all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/shared_data.h"
#include "tests/unit/sim/topo_program.h"

namespace mortise::sim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PublishedSets : public TopoProgram {
 protected:
  void SetUp() override {
    const auto shared = test::shared_dir();
    if (!shared) GTEST_SKIP() << "the published data (../shared, or MORTISE_SHARED) are not here";
    folder_ = *shared / "topologies";
    std::ifstream file(folder_ / "nvlink_sets.json");
    ASSERT_TRUE(file);
    const json data = json::parse(file);
    for (const auto& [name, system] : data.at("systems").items()) {
      if (fs::is_regular_file(matrix_of(system))) systems_[name] = system;
    }
    ASSERT_GE(systems_.size(), 7U);
  }

  fs::path matrix_of(const json& system) const { return folder_ / system.at("matrix_source").get<std::string>(); }

  // Models are those of the systems' names.
  json ask(const json& system, const std::string& sizes, const std::string& objective, const std::string& free) const {
    const std::string file = matrix_of(system).filename().string();
    const bool volta = file.starts_with("dgx1v") || file.starts_with("dgx2");
    std::vector<std::string> arguments = {"--matrix", matrix_of(system).string(), "--gpu",
                                          volta                          ? "V100"
                                          : file.starts_with("dgx_h100") ? "H100"
                                                                         : "A100"};
    arguments.insert(arguments.end(), {"--best", sizes, "--objective", objective, "--json"});
    if (!free.empty()) arguments.insert(arguments.end(), {"--free", free});
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, kExitDone) << ran.err;
    return json::parse(ran.out).at("best");
  }

  fs::path folder_;
  json systems_;
};

std::string sizes_of(const json& by_size) {
  std::string sizes;
  for (const auto& [size, row] : by_size.items()) sizes += (sizes.empty() ? "" : ",") + size;
  return sizes;
}

// `published` has the value, or the values in their order, in GB/s, and some or all of the sets that have it.
void expect_published(const json& found, const json& published, const std::vector<std::string>& keys) {
  const json& told = published.at("value");
  const json values = told.is_array() ? told : json::array({told});
  ASSERT_LE(values.size(), keys.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(found.at(keys[i]), values[i].get<std::int64_t>() * 1000) << keys[i];
  }
  EXPECT_EQ(found.at("mb_per_s"), values[0].get<std::int64_t>() * 1000);
  EXPECT_EQ(found.at("gpus"), found.at("all_free").at("gpus"));
  const json& sets = published.at("sets");
  if (sets.size() < published.at("count").get<std::size_t>()) return;
  EXPECT_NE(std::find(sets.begin(), sets.end(), found.at("gpus")), sets.end()) << found.at("gpus");
}

TEST_F(PublishedSets, AreFoundForEveryObjective) {
  std::size_t checked = 0;
  for (const auto& [name, system] : systems_.items()) {
    const json& by_size = system.at("k");
    const std::string sizes = sizes_of(by_size);
    const json by_bottleneck = ask(system, sizes, "bottleneck", "");
    const json by_ring = ask(system, sizes, "ring", "");
    const json by_total = ask(system, sizes, "total", "");
    std::size_t at = 0;
    for (const auto& [size, row] : by_size.items()) {
      SCOPED_TRACE(name);
      SCOPED_TRACE("k=" + size);
      const std::vector<std::string> pair = {"bottleneck_mb_per_s", "total_mb_per_s"};
      expect_published(by_bottleneck[at], row.at("max_bottleneck_pair"), pair);
      expect_published(by_bottleneck[at], row.at("max_bottleneck_then_total"), pair);
      expect_published(by_ring[at], row.at("max_ring_bottleneck_then_total"), {"ring_mb_per_s", "total_mb_per_s"});
      expect_published(by_total[at], row.at("max_total"), {"total_mb_per_s"});
      checked += 4;
      ++at;
    }
  }
  EXPECT_GE(checked, 4U * 43U);
}

TEST_F(PublishedSets, ThePluginsFirstChoicesAreFound) {
  std::size_t checked = 0;
  for (const auto& [name, system] : systems_.items()) {
    if (!system.contains("go_gpuallocator_besteffort")) continue;
    const json& first = system["go_gpuallocator_besteffort"].at("first_choice_all_free");
    const json best = ask(system, sizes_of(first), "nvidia", "");
    std::size_t at = 0;
    for (const auto& [size, gpus] : first.items()) {
      EXPECT_EQ(best[at++].at("gpus"), gpus) << name << " k=" << size;
      ++checked;
    }
  }
  EXPECT_GE(checked, 30U);
}

TEST_F(PublishedSets, ThePluginsChoicesWithoutTwoGpusAreFound) {
  std::size_t checked = 0;
  for (const auto& [name, system] : systems_.items()) {
    if (!system.contains("after_pair_taken_besteffort")) continue;
    for (const auto& [taken, by_size] : system["after_pair_taken_besteffort"].items()) {
      std::string free;
      for (int gpu = 0; gpu < system.at("gpus").get<int>(); ++gpu) {
        const std::string index = std::to_string(gpu);
        if (taken.find(index) == std::string::npos) free += (free.empty() ? "" : ",") + index;
      }
      const json best = ask(system, sizes_of(by_size), "nvidia", free);
      std::size_t at = 0;
      for (const auto& [size, gpus] : by_size.items()) {
        EXPECT_EQ(best[at++].at("gpus"), gpus) << name << " without " << taken << ", k=" << size;
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 84U);
}

}  // namespace
}  // namespace mortise::sim
