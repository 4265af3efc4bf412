// The bundled sample, replayed and compared with results that are kept beside this file (README.md tells how).
#include <gtest/gtest.h>

#include <string>

#include "sim/files.h"
#include "sim/inputs.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "tests/support/tree.h"

namespace mortise::sim {
namespace {

void expect_golden(const std::string& policy, const std::string& golden_file) {
  const std::string source = mortise::test::source_dir();
  const auto cluster = load_cluster({source + "/config/clusters/sample-nodes.csv"}, Digest::kNone);
  ASSERT_TRUE(cluster) << cluster.message();
  const auto trace = load_trace(source + "/traces/samples/sample-pods.csv", Digest::kNone);
  ASSERT_TRUE(trace) << trace.message();
  const auto arrival = load_arrival("inflate:1.3");
  ASSERT_TRUE(arrival) << arrival.message();
  const auto run = replay({cluster->file, nullptr, trace->workload, *arrival, policy, 42});
  ASSERT_TRUE(run) << run.message();
  const auto golden = read_file(source + "/tests/golden/" + golden_file);
  ASSERT_TRUE(golden) << golden.message();
  EXPECT_EQ(run_json(*run, std::nullopt) + "\n", *golden);
}

TEST(SampleGolden, FgdGivesTheKeptResult) {
  expect_golden("fgd", "sample_fgd_42.json");
}
TEST(SampleGolden, RandomGivesTheKeptResult) {
  expect_golden("random", "sample_random_42.json");
}

}  // namespace
}  // namespace mortise::sim
