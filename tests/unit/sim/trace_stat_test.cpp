#include "sim/trace_stat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/small_world.h"

namespace mortise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

traces::Trace sample_trace() {
  traces::Trace trace{"sample", {}};
  trace.pods = {make_pod("a", 1, 250, 500), make_pod("b", 1, 250, 500), make_pod("c", 8, 1000, 64000),
                make_pod("d", 0, 0, 2000)};
  trace.pods[2].gpu_spec = "T4";
  trace.pods[0].duration = 10 * kSecond;
  trace.pods[1].duration = 30 * kSecond;
  trace.pods[2].duration = 20 * kSecond;
  trace.pods[1].submit = 100 * kSecond;
  return trace;
}

TEST(TraceStat, CountsPodsAndDemand) {
  const TraceStat stat = stat_of(sample_trace());
  EXPECT_EQ(stat.trace, "sample");
  EXPECT_EQ(stat.pods, 4);
  EXPECT_THAT(stat.pods_by_gpus, ElementsAre(Pair(0, 1), Pair(1, 2), Pair(8, 1)));
  EXPECT_EQ(stat.share_pods, 2);
  EXPECT_EQ(stat.model_pods, 1);
  EXPECT_EQ(stat.distinct_requests, 3);
  EXPECT_EQ(stat.gpu_demand, 8500);
  EXPECT_EQ(stat.cpu_demand, 67'000);
  EXPECT_DOUBLE_EQ(stat.memory_demand_gib, 4);
  EXPECT_EQ(stat.last_submit, 100 * kSecond);
}

TEST(TraceStat, DurationsAreNearestRankOfTheKnownOnes) {
  const TraceStat stat = stat_of(sample_trace());
  EXPECT_EQ(stat.durations_unknown, 1);
  ASSERT_TRUE(stat.durations.has_value());
  // Of 10, 20 and 30 s: half of three, rounded up, is the second; nine tenths and more the third.
  EXPECT_EQ(stat.durations->p50, 20 * kSecond);
  EXPECT_EQ(stat.durations->p90, 30 * kSecond);
  EXPECT_EQ(stat.durations->p99, 30 * kSecond);
  EXPECT_EQ(stat.durations->max, 30 * kSecond);
}

TEST(TraceStat, GangsAreCountedWhereThereAreSome) {
  traces::Trace trace = sample_trace();
  EXPECT_THAT(stat_json(stat_of(trace)), testing::Not(HasSubstr("gangs")));
  trace.gangs = {{"g", {{"", 0, 1}, {"", 1, 2}}, "", ""}};
  EXPECT_THAT(stat_json(stat_of(trace)), HasSubstr(R"("gangs":{"count":1,"pods":3,"largest":3})"));
  EXPECT_THAT(stat_text(stat_of(trace)), HasSubstr("pods in gangs"));
}

TEST(TraceStat, WithoutTimesSaysNothingOfDurations) {
  const TraceStat stat = stat_of({"t", {make_pod("a", 1, 1000)}});
  EXPECT_FALSE(stat.durations.has_value());
  EXPECT_THAT(stat_json(stat), HasSubstr("\"duration_s\":null"));
}

}  // namespace
}  // namespace mortise::sim
