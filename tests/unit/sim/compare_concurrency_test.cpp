#include <gtest/gtest.h>

#include "sim/compare.h"
#include "sim/report.h"
#include "tests/unit/sim/scratch_dir.h"
#include "tests/unit/sim/small_world.h"

namespace mortise::sim {
namespace {

TEST(CompareConcurrency, ThreadsShareInputsAndAFolderOfRuns) {
  const ClusterInput cluster = make_small_cluster();
  std::vector<TraceInput> traces;
  traces.push_back(make_small_trace());
  const ArrivalPlan arrival = arrive_inflated(1.3);
  const ScratchDir dir;
  const CompareSpec spec{cluster, traces, arrival, {"random", "fgd"}, {1, 2, 3, 4}, 4, {}, dir.path()};
  std::atomic<int> done = 0;
  CompareHooks hooks;
  hooks.on_run_done = [&] { ++done; };
  const auto first = compare(spec, hooks);
  ASSERT_TRUE(first) << first.message();
  const auto second = compare(spec, hooks);
  ASSERT_TRUE(second) << second.message();
  EXPECT_EQ(done, 16);
  EXPECT_EQ(comparison_json(*first), comparison_json(*second));
}

}  // namespace
}  // namespace mortise::sim
