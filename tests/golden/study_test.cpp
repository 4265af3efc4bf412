// The published fragmentation study (Weng et al., USENIX ATC 2023): placements, allocation and fragmentation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "sim/inputs.h"
#include "sim/replay.h"
#include "tests/support/shared_data.h"

namespace mortise::sim {
namespace {

/// A published policy: our name, its name in runs, its name in means.
struct Published {
  const char* ours;
  const char* in_runs;
  const char* in_means;
};
// Random is left out: its draws depend on thread timing in the study itself.
constexpr Published kDeterministic[] = {{"dot-product", "DotProd", "02-DotProd"},
                                        {"gpu-clustering", "GpuClustering", "03-GpuClustering"},
                                        {"gpu-packing", "GpuPacking", "04-GpuPacking"},
                                        {"best-fit", "BestFit", "05-BestFit"},
                                        {"fgd", "FGD", "06-FGD"}};
constexpr std::uint64_t kFirstSeed = 42;
constexpr std::uint64_t kLastSeed = 51;

/// A CSV table without quotes, with either kind of line end, by column name.
class Table {
 public:
  explicit Table(const std::filesystem::path& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    columns_ = split(line);
    while (std::getline(in, line)) rows_.push_back(split(line));
  }

  /// The cell in the one row whose leading cells are `key`.
  double number(const std::vector<std::string>& key, const std::string& column) const {
    for (const auto& row : rows_) {
      if (!std::equal(key.begin(), key.end(), row.begin())) continue;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i] == column) return std::stod(row.at(i));
      }
    }
    throw std::runtime_error("no cell " + key.front() + " / " + column);
  }

 private:
  static std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream in(line.substr(0, line.find('\r')));
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    return cells;
  }

  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The study's inputs and, once asked for, its runs.
class Study : public testing::Test {
 protected:
  void SetUp() override {
    const auto shared = test::shared_dir();
    if (!shared) GTEST_SKIP() << "the published data (../shared, or MORTISE_SHARED) are not here";
    shared_ = *shared;
  }

  Result<ReplayResult> replay_published(const std::string& trace, const std::string& policy, std::uint64_t seed,
                                        std::ostream* placements) const {
    const auto golden = [&](const char* what) {
      return (shared_ / "golden" / fmt::format("{}_{}_seed{}.txt", what, trace, seed)).string();
    };
    const auto cluster = load_cluster(
        {.cluster = shared_ / "traces/openb/openb_node_list_gpu_node.csv", .node_rank = golden("noderank")},
        Digest::kNone);
    if (!cluster) return cluster.error();
    const auto input = load_trace(shared_ / fmt::format("traces/openb/openb_pod_list_{}.csv", trace), Digest::kNone);
    if (!input) return input.error();
    const auto arrival = load_arrival("order:" + golden("arrival"));
    if (!arrival) return arrival.error();
    ReplayHooks hooks;
    hooks.placements = placements;
    return replay({cluster->file, cluster->rank_table(), input->workload, *arrival, policy, seed}, hooks);
  }

  /// A run of the study; each is simulated once for all tests.
  ReplayResult run(const std::string& trace, const std::string& policy, std::uint64_t seed) const {
    static std::map<std::tuple<std::string, std::string, std::uint64_t>, ReplayResult> known;
    const auto [entry, is_new] = known.try_emplace({trace, policy, seed});
    if (is_new) {
      auto result = replay_published(trace, policy, seed, nullptr);
      EXPECT_TRUE(result) << result.message();
      if (result) entry->second = *std::move(result);
    }
    return entry->second;
  }

  void expect_published_allocation(const std::string& trace, std::uint64_t seed) const {
    const Table published(shared_ / "expected/fgd_runs.csv");
    for (const Published& policy : kDeterministic) {
      const ReplayResult ours = run(trace, policy.ours, seed);
      for (const int arrived_pct : {95, 100, 130}) {
        const auto allocation = curve_at(ours.curve, arrived_pct).allocation_pct;
        const double expected =
            published.number({trace, policy.in_runs, std::to_string(seed)}, fmt::format("alloc{}", arrived_pct));
        ASSERT_TRUE(allocation.has_value());
        // One hundredth, and the error of comparing decimals in binary.
        EXPECT_NEAR(*allocation, expected, 0.01 + 1e-9)
            << trace << " " << policy.ours << " " << seed << " @" << arrived_pct;
      }
    }
  }

  void expect_published_placements(const std::string& policy, const std::string& published_name) const {
    std::ostringstream placements;
    const auto ours = replay_published("default", policy, kFirstSeed, &placements);
    ASSERT_TRUE(ours) << ours.message();
    const auto ranks = kube::load_node_ranks((shared_ / "golden/noderank_default_seed42.txt").string());
    ASSERT_TRUE(ranks) << ranks.message();
    std::istringstream our_lines(placements.str());
    std::ifstream published(shared_ / fmt::format("golden/placement_default_{}_seed42.txt", published_name));
    int lines = 0;
    int differences = 0;
    for (std::string line; std::getline(published, line); ++lines) {
      std::string our_line;
      std::getline(our_lines, our_line);
      if (in_published_form(our_line, *ranks) == line) continue;
      if (++differences <= 5) ADD_FAILURE() << "line " << lines + 1 << ": published " << line << ", ours " << our_line;
    }
    std::string rest;
    EXPECT_FALSE(std::getline(our_lines, rest)) << "more arrivals than published";
    EXPECT_EQ(lines, 10'866);
    EXPECT_EQ(differences, 0) << policy;
  }

  std::filesystem::path shared_;

 private:
  /// "pod-clone-1 node 0,1" -> "pod 0012-node": there the rank is part of the node's name, and repeated pods share one.
  static std::string in_published_form(const std::string& our_line, const kube::NodeRanks& ranks) {
    std::istringstream words(our_line);
    std::string pod;
    std::string node;
    words >> pod >> node;
    pod = pod.substr(0, pod.find("-clone-"));
    if (node == "FAIL") return pod + " FAIL";
    const auto rank = ranks.find(node);
    return rank == ranks.end() ? our_line : fmt::format("{} {:04}-{}", pod, rank->second, node);
  }
};

TEST_F(Study, FgdPlacesEveryPodAsPublished) {
  expect_published_placements("fgd", "FGD");
}
TEST_F(Study, BestFitPlacesEveryPodAsPublished) {
  expect_published_placements("best-fit", "BestFit");
}
TEST_F(Study, GpuPackingPlacesEveryPodAsPublished) {
  expect_published_placements("gpu-packing", "GpuPacking");
}

TEST_F(Study, AllocationOfTheDefaultWorkloadIsAsPublishedForAllSeeds) {
  for (std::uint64_t seed = kFirstSeed; seed <= kLastSeed; ++seed) expect_published_allocation("default", seed);
}
TEST_F(Study, AllocationWithHalfTheCpuPodsIsAsPublished) {
  expect_published_allocation("cpu050", kFirstSeed);
}
TEST_F(Study, AllocationWithManySharesIsAsPublished) {
  expect_published_allocation("gpushare40", kFirstSeed);
}
TEST_F(Study, AllocationWithModelConstraintsIsAsPublished) {
  expect_published_allocation("gpuspec33", kFirstSeed);
}
TEST_F(Study, AllocationWithManyMultiGpuPodsIsAsPublished) {
  expect_published_allocation("multigpu20", kFirstSeed);
}

TEST_F(Study, MeanFragmentationOfTheDefaultWorkloadIsAsPublished) {
  const Table published(shared_ / "expected/fgd_means.csv");
  constexpr double kSeeds = kLastSeed - kFirstSeed + 1;
  for (const Published& policy : kDeterministic) {
    for (const int arrived_pct : {60, 80, 90, 95, 100, 110, 120, 130}) {
      double of_idle = 0;
      double of_capacity = 0;
      for (std::uint64_t seed = kFirstSeed; seed <= kLastSeed; ++seed) {
        const CurveRow row = curve_at(run("default", policy.ours, seed).curve, arrived_pct);
        ASSERT_TRUE(row.frag_pct_of_idle.has_value() && row.frag_pct_of_capacity.has_value());
        of_idle += *row.frag_pct_of_idle / kSeeds;
        of_capacity += *row.frag_pct_of_capacity / kSeeds;
      }
      const std::vector<std::string> key = {"openb_pod_list_default", policy.in_means};
      EXPECT_NEAR(of_idle, published.number(key, fmt::format("frag_ratio_pct_at{}_mean", arrived_pct)), 0.05)
          << policy.ours << " @" << arrived_pct;
      EXPECT_NEAR(of_capacity, published.number(key, fmt::format("frag_amount_pct_at{}_mean", arrived_pct)), 0.05)
          << policy.ours << " @" << arrived_pct;
    }
  }
}

}  // namespace
}  // namespace mortise::sim
