// Exhaustive best sets of published machines, and what go-gpuallocator's own tests expect.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/topology/device_sets.h"
#include "tests/support/machine_matrices.h"
#include "tests/support/shared_data.h"

namespace mortise::topology {
namespace {

using nlohmann::json;

GpuSet set_of(const json& list) {
  GpuSet set = 0;
  for (const json& gpu : list) set |= gpu_bit(gpu.get<int>());
  return set;
}

PairMatrix matrix_of(const json& rows) {
  PairMatrix matrix(static_cast<int>(rows.size()));
  for (int a = 0; a < matrix.gpus; ++a) {
    for (int b = 0; b < a; ++b) {
      matrix.set(a, b, rows[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)].get<std::int64_t>());
    }
  }
  return matrix;
}

PairMatrix bandwidth_of(const json& system) {
  if (system["pair_gbps"] != "uniform") return matrix_of(system["pair_gbps"]);
  return test::alike(system["gpus"].get<int>(), system["k"]["2"]["max_total"]["value"].get<std::int64_t>());
}

class NvlinkSets : public testing::Test {
 protected:
  void SetUp() override {
    const auto shared = test::shared_dir();
    if (!shared) GTEST_SKIP() << "the published data (../shared, or MORTISE_SHARED) are not here";
    std::ifstream file(*shared / "topologies" / "nvlink_sets.json");
    ASSERT_TRUE(file);
    data_ = json::parse(file);
  }

  json data_;
};

using Published = std::vector<std::int64_t> (*)(const SetValue&);

// `row` says the value of the best sets of `size`, how many there are, and lists all or some.
void expect_best(const DeviceSets& sets, Objective objective, int size, const json& row, Published value_of) {
  const json& told = row["value"];
  const auto value = told.is_array() ? told.get<std::vector<std::int64_t>>() : std::vector{told.get<std::int64_t>()};
  const GpuSet best = sets.best(objective, sets.all(), size);
  EXPECT_EQ(size_of(best), size);
  EXPECT_EQ(value_of(sets.value(best)), value);
  std::size_t count = 0;
  for_each_subset(sets.all(), [&](GpuSet set) {
    if (size_of(set) == size && value_of(sets.value(set)) == value) ++count;
  });
  EXPECT_EQ(count, row["count"].get<std::size_t>());
  bool listed = row["sets"].size() < count;
  for (const json& list : row["sets"]) {
    EXPECT_EQ(value_of(sets.value(set_of(list))), value) << list;
    listed = listed || set_of(list) == best;
  }
  EXPECT_TRUE(listed) << "set " << best;
}

TEST_F(NvlinkSets, EveryExhaustiveBestSetIsMet) {
  std::size_t checked = 0;
  for (const auto& [name, system] : data_["systems"].items()) {
    SCOPED_TRACE(name);
    const PairMatrix bandwidth = bandwidth_of(system);
    ASSERT_EQ(bandwidth.gpus, system["gpus"].get<int>());
    const Result<DeviceSets> sets = DeviceSets::of(bandwidth, PairMatrix(bandwidth.gpus));
    ASSERT_TRUE(sets) << sets.message();
    for (const auto& [key, rows] : system["k"].items()) {
      SCOPED_TRACE("k=" + key);
      const int size = std::stoi(key);
      expect_best(*sets, Objective::kTotal, size, rows["max_total"],
                  [](const SetValue& v) { return std::vector{v.total}; });
      expect_best(*sets, Objective::kBottleneck, size, rows["max_bottleneck_pair"],
                  [](const SetValue& v) { return std::vector{v.bottleneck}; });
      expect_best(*sets, Objective::kBottleneck, size, rows["max_bottleneck_then_total"], [](const SetValue& v) {
        return std::vector{v.bottleneck, v.total};
      });
      expect_best(*sets, Objective::kRing, size, rows["max_ring_bottleneck_then_total"], [](const SetValue& v) {
        return std::vector{v.ring, v.total};
      });
      checked += 4;
    }
  }
  EXPECT_EQ(checked, 4U * 64U);
}

TEST_F(NvlinkSets, EveryFirstChoiceOfTheAllocatorIsMet) {
  std::size_t checked = 0;
  for (const auto& [name, system] : data_["systems"].items()) {
    if (!system.contains("go_gpuallocator_besteffort")) continue;
    SCOPED_TRACE(name);
    const json& expected = system["go_gpuallocator_besteffort"];
    const PairMatrix scores = matrix_of(expected["score_matrix"]);
    const PluginSets sets{SetValues(scores)};
    const GpuSet all = gpu_bit(scores.gpus) - 1;
    for (const auto& [size, list] : expected["first_choice_all_free"].items()) {
      EXPECT_EQ(sets.pick(all, std::stoi(size)).set, set_of(list)) << "k=" << size;
      ++checked;
    }
    if (!system.contains("after_pair_taken_besteffort")) continue;
    for (const auto& [taken, rows] : system["after_pair_taken_besteffort"].items()) {
      const GpuSet free = all & ~gpu_bit(taken.at(0) - '0') & ~gpu_bit(taken.at(2) - '0');
      for (const auto& [size, list] : rows.items()) {
        EXPECT_EQ(sets.pick(free, std::stoi(size)).set, set_of(list)) << taken << " taken, k=" << size;
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 50U + 84U);
}

// The machine of the allocator's tests that is no DGX-1, from its list of test nodes.
PairMatrix four_rtx8000() {
  PairMatrix scores = test::alike(4, 10);
  test::set_pairs(scores, {{0, 1}, {2, 3}}, 20);
  test::set_pairs(scores, {{0, 3}, {1, 2}}, 200);
  return scores;
}

TEST_F(NvlinkSets, EveryPublishedTestOfTheAllocatorIsMet) {
  const json& systems = data_["systems"];
  const PluginSets rtx{SetValues(four_rtx8000())};
  const PluginSets pascal{
      SetValues(matrix_of(systems["dgx1p_p100_hybrid_cube_mesh"]["go_gpuallocator_besteffort"]["score_matrix"]))};
  const PluginSets volta{
      SetValues(matrix_of(systems["dgx1v_v100_hybrid_cube_mesh"]["go_gpuallocator_besteffort"]["score_matrix"]))};
  const json& cases = data_["go_gpuallocator_published_tests"]["cases"];
  EXPECT_EQ(cases.size(), 45U);
  for (const json& one : cases) {
    const auto name = one["test"].get<std::string>();
    const PluginSets& sets = name.find("RTX8000") != std::string::npos  ? rtx
                             : name.find("Pascal") != std::string::npos ? pascal
                                                                        : volta;
    const PluginPick pick = sets.pick(set_of(one["available"]), set_of(one["required"]), one["size"].get<int>());
    EXPECT_EQ(pick.set, set_of(one["published"])) << name << " " << one["available"];
    EXPECT_FALSE(pick.fails) << name;
  }
}

}  // namespace
}  // namespace mortise::topology
