#include "sim/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>

#include "sim/files.h"
#include "sim/report.h"
#include "sim/run_store.h"
#include "tests/unit/sim/scratch_dir.h"
#include "tests/unit/sim/small_world.h"

namespace mortise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Inputs that live as long as the comparisons made of them.
struct World {
  ClusterInput cluster = make_small_cluster();
  std::vector<TraceInput> traces = [] {
    std::vector<TraceInput> both;
    both.push_back(make_small_trace("one"));
    both.push_back(make_small_trace("two"));
    return both;
  }();
  ArrivalPlan arrival = arrive_inflated(1.3);

  CompareSpec spec(std::string out_dir = "") const {
    return {cluster, traces, arrival, {"random", "fgd", "best-fit"}, {42, 43, 44}, 1, {}, std::move(out_dir)};
  }
};

/// Runs a comparison and collects its notes.
struct Outcome {
  Result<Comparison> comparison;
  std::vector<std::string> notes;
};
Outcome run(const CompareSpec& spec) {
  std::vector<std::string> notes;
  std::mutex mutex;
  CompareHooks hooks;
  hooks.on_note = [&](const std::string& note) {
    const std::lock_guard lock(mutex);
    notes.push_back(note);
  };
  Result<Comparison> comparison = compare(spec, hooks);
  return {std::move(comparison), std::move(notes)};
}

TEST(Compare, ResultsStandByTraceThenPolicyThenSeed) {
  const World world;
  const auto comparison = compare(world.spec());
  ASSERT_TRUE(comparison) << comparison.message();
  ASSERT_THAT(comparison->runs, SizeIs(18));
  std::size_t i = 0;
  for (const char* trace : {"one", "two"}) {
    for (const char* policy : {"random", "fgd", "best-fit"}) {
      for (const std::uint64_t seed : {42U, 43U, 44U}) {
        EXPECT_EQ(comparison->runs[i].trace, trace);
        EXPECT_EQ(comparison->runs[i].policy, policy);
        EXPECT_EQ(comparison->runs[i].seed, seed);
        ++i;
      }
    }
  }
}

TEST(Compare, TheNumberOfThreadsDoesNotChangeAByte) {
  const World world;
  CompareSpec spec = world.spec();
  const auto alone = compare(spec);
  ASSERT_TRUE(alone) << alone.message();
  for (const std::size_t threads : {2U, 5U, 64U}) {
    spec.threads = threads;
    const auto together = compare(spec);
    ASSERT_TRUE(together) << together.message();
    EXPECT_EQ(comparison_json(*alone), comparison_json(*together));
  }
}

TEST(Compare, EachRunIsWhatReplayGives) {
  const World world;
  const auto comparison = compare(world.spec());
  ASSERT_TRUE(comparison) << comparison.message();
  const auto single = replay({world.cluster.file, nullptr, world.traces[1].workload, world.arrival, "fgd", 43});
  ASSERT_TRUE(single) << single.message();
  EXPECT_EQ(comparison->runs[13], *single);  // second trace (9), second policy (3), second seed (1)
}

TEST(Compare, ShardsPartTheMatrix) {
  const World world;
  std::multiset<std::string> parts;
  for (const std::uint64_t index : {1U, 2U, 3U, 4U}) {
    CompareSpec spec = world.spec();
    spec.shard = {index, 4};
    const auto part = compare(spec);
    ASSERT_TRUE(part) << part.message();
    EXPECT_EQ(part->runs.size(), run_count(spec));
    for (const ReplayResult& one : part->runs) parts.insert(run_json(one, std::nullopt));
  }
  std::multiset<std::string> whole;
  const auto comparison = compare(world.spec());
  ASSERT_TRUE(comparison) << comparison.message();
  for (const ReplayResult& one : comparison->runs) whole.insert(run_json(one, std::nullopt));
  EXPECT_EQ(parts, whole);
}

TEST(Compare, MoreShardsThanRunsLeaveSomeEmpty) {
  const World world;
  CompareSpec spec = world.spec();
  spec.shard = {50, 100};
  const auto part = compare(spec);
  ASSERT_TRUE(part) << part.message();
  EXPECT_THAT(part->runs, IsEmpty());
  EXPECT_THAT(part->summaries, IsEmpty());
}

TEST(Compare, AFinishedRunIsNotRepeated) {
  const World world;
  const ScratchDir dir;
  const CompareSpec spec = world.spec(dir.path());
  const auto first = run(spec);
  ASSERT_TRUE(first.comparison) << first.comparison.message();
  // A forged result under the right digest comes back: so nothing was simulated again.
  ReplayResult forged = first.comparison->runs[4];
  const std::string digest = inputs_digest(world.cluster, world.traces[0], world.arrival, forged.policy, forged.seed);
  forged.pods_placed = 999'999;
  ASSERT_TRUE(RunStore(dir.path()).save(forged, digest));
  const auto second = run(spec);
  ASSERT_TRUE(second.comparison) << second.comparison.message();
  EXPECT_THAT(second.notes, IsEmpty());
  EXPECT_EQ(second.comparison->runs[4].pods_placed, 999'999);
  EXPECT_EQ(second.comparison->runs[5], first.comparison->runs[5]);
}

TEST(Compare, ResumingGivesTheSameBytes) {
  const World world;
  const ScratchDir dir;
  CompareSpec half = world.spec(dir.path());
  half.shard = {1, 2};
  ASSERT_TRUE(compare(half));
  const auto resumed = compare(world.spec(dir.path()));
  const auto fresh = compare(world.spec());
  ASSERT_TRUE(resumed) << resumed.message();
  ASSERT_TRUE(fresh) << fresh.message();
  EXPECT_EQ(comparison_json(*resumed), comparison_json(*fresh));
}

TEST(Compare, ADamagedRunIsSimulatedAgainAndSaidSo) {
  const World world;
  const ScratchDir dir;
  const CompareSpec spec = world.spec(dir.path());
  const auto first = run(spec);
  ASSERT_TRUE(first.comparison) << first.comparison.message();
  const auto path = RunStore(dir.path()).path("one", "fgd", 43);
  const std::string whole = *read_file(path);
  std::ofstream(path, std::ios::trunc) << whole.substr(0, whole.size() / 2);
  const auto second = run(spec);
  ASSERT_TRUE(second.comparison) << second.comparison.message();
  EXPECT_THAT(second.notes, ElementsAre(HasSubstr("one_fgd_43.json: damaged; run again")));
  EXPECT_EQ(comparison_json(*second.comparison), comparison_json(*first.comparison));
  EXPECT_EQ(*read_file(path), whole);
}

TEST(Compare, OtherInputsAreSimulatedAgain) {
  World world;
  const ScratchDir dir;
  ASSERT_TRUE(compare(world.spec(dir.path())));
  world.cluster.file.nodes.pop_back();
  world.cluster.digest = "smaller cluster";
  const auto second = run(world.spec(dir.path()));
  ASSERT_TRUE(second.comparison) << second.comparison.message();
  EXPECT_THAT(second.notes, SizeIs(18));
  EXPECT_EQ(second.comparison->runs[0].nodes, 5);
}

TEST(Compare, EveryInputIsPartOfTheDigest) {
  const World world;
  const auto digest = [&](const ClusterInput& cluster, const TraceInput& trace, const ArrivalPlan& arrival,
                          const char* policy,
                          std::uint64_t seed) { return inputs_digest(cluster, trace, arrival, policy, seed); };
  ClusterInput cluster = make_small_cluster();
  cluster.digest = "another";
  TraceInput trace = make_small_trace("one");
  trace.digest = "another";
  const std::set<std::string> digests = {
      digest(world.cluster, world.traces[0], world.arrival, "fgd", 42),
      digest(cluster, world.traces[0], world.arrival, "fgd", 42),
      digest(world.cluster, world.traces[1], world.arrival, "fgd", 42),
      digest(world.cluster, trace, world.arrival, "fgd", 42),
      digest(world.cluster, world.traces[0], arrive_in_order("p1\n"), "fgd", 42),
      digest(world.cluster, world.traces[0], arrive_in_order("p2\n"), "fgd", 42),
      digest(world.cluster, world.traces[0], world.arrival, "random", 42),
      digest(world.cluster, world.traces[0], world.arrival, "fgd", 43),
  };
  EXPECT_THAT(digests, SizeIs(8));
}

TEST(Compare, WhenStoppedStartsNoFurtherRun) {
  const World world;
  const ScratchDir dir;
  std::atomic<bool> stop = false;
  CompareHooks hooks;
  hooks.stop = &stop;
  int done = 0;
  hooks.on_run_done = [&] { stop = ++done == 3; };
  const auto comparison = compare(world.spec(dir.path()), hooks);
  ASSERT_FALSE(comparison);
  EXPECT_THAT(comparison.message(), HasSubstr("interrupted after 3 of 18 runs"));
  const auto files = std::filesystem::directory_iterator(dir.path());
  EXPECT_EQ(std::distance(files, std::filesystem::directory_iterator()), 3);
}

TEST(Compare, TheFirstErrorByOrderIsReported) {
  World world;
  world.arrival = arrive_in_order("p1\nnobody\n");
  CompareSpec spec = world.spec();
  spec.threads = 8;
  const auto comparison = compare(spec);
  ASSERT_FALSE(comparison);
  EXPECT_THAT(comparison.message(), HasSubstr("trace one, seed 42"));
  EXPECT_THAT(comparison.message(), HasSubstr("nobody"));
}

TEST(Compare, TwoTracesOfOneNameAreRefused) {
  World world;
  world.traces[1] = make_small_trace("one");
  const auto comparison = compare(world.spec());
  ASSERT_FALSE(comparison);
  EXPECT_THAT(comparison.message(), HasSubstr("two traces are named 'one'"));
}

TEST(Summary, IsMeanAndExtremesOverTheSeedsWithAValue) {
  ReplayResult first;
  first.trace = "t";
  first.policy = "p";
  first.allocation_pct = 90;
  first.frag_pct_of_idle = 50;
  first.curve.resize(131);
  first.curve[95] = {95, 80.0, std::nullopt, 4.0};
  first.curve[130] = {130, 90.0, 50.0, 5.0};
  ReplayResult second = first;
  second.allocation_pct = 93;
  second.frag_pct_of_idle.reset();
  second.curve.resize(100);
  second.curve[95] = {95, 81.0, std::nullopt, 6.0};
  const auto summaries = summarise({first, second});
  ASSERT_THAT(summaries, SizeIs(1));
  EXPECT_EQ(summaries[0].seeds, 2);
  ASSERT_THAT(summaries[0].at, SizeIs(3));
  EXPECT_EQ(summaries[0].at[0].allocation_pct, (Spread{80.5, 80, 81, 2}));
  EXPECT_EQ(summaries[0].at[0].frag_pct_of_idle, std::nullopt);
  EXPECT_EQ(summaries[0].at[0].frag_pct_of_capacity, (Spread{5, 4, 6, 2}));
  EXPECT_EQ(summaries[0].at[2].allocation_pct, (Spread{90, 90, 90, 1}));
  EXPECT_EQ(summaries[0].final.allocation_pct, (Spread{91.5, 90, 93, 2}));
  EXPECT_EQ(summaries[0].final.frag_pct_of_idle, (Spread{50, 50, 50, 1}));
}

}  // namespace
}  // namespace mortise::sim
