#include "traces/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/tree.h"
#include "traces/node_csv.h"
#include "traces/openb.h"

namespace mortise::traces {
namespace {

using testing::StartsWith;

constexpr MilliGpu kStudyGpus = 6'212'000;

const SynthProfile& openb() {
  return **find_profile("openb");
}

std::string pods_csv(const Trace& trace) {
  std::ostringstream out;
  write_openb_pods(out, trace.pods);
  return out.str();
}

/// Half the sum of the differences between a published distribution (counts) and how often `key` gives each value.
template <class Key>
double total_variation(const std::vector<PodRecord>& pods, const std::map<std::string, double>& published, Key key) {
  std::map<std::string, double> difference;
  double total = 0;
  for (const auto& [value, count] : published) total += count;
  for (const auto& [value, count] : published) difference[value] = count / total;
  for (const PodRecord& pod : pods) difference[key(pod)] -= 1.0 / static_cast<double>(pods.size());
  double sum = 0;
  for (const auto& [value, d] : difference) sum += std::abs(d);
  return sum / 2;
}

// The published figures below are counts in the default pod list of Alibaba cluster-trace-gpu-v2023 (8,152 pods) and in
// its list of 1,213 GPU nodes. Bounds on the total variation of 100,000 draws: the sampling noise of a distribution
// over k values is about sqrt(k / (2 pi n)), 0.006 for 20 values; the rest is the rare classes the profile leaves out,
// 0.012.
class SynthMarginals : public testing::Test {
 protected:
  static void SetUpTestSuite() { trace_ = new Trace(*synth_pods(openb(), 100'000, kStudyGpus, 0.85, 1)); }
  static void TearDownTestSuite() { delete trace_; }
  static const std::vector<PodRecord>& pods() { return trace_->pods; }

  static Trace* trace_;
};
Trace* SynthMarginals::trace_ = nullptr;

TEST_F(SynthMarginals, NumberOfGpus) {
  const std::map<std::string, double> published = {{"0", 1088}, {"1", 6989}, {"2", 16}, {"4", 15}, {"8", 44}};
  EXPECT_LT(total_variation(pods(), published, [](const PodRecord& p) { return std::to_string(p.gpus); }), 0.005);
}

TEST_F(SynthMarginals, ShareOfAGpu) {
  const std::map<std::string, double> published = {
      {"0", 1088}, {"1000", 3986}, {"810", 1078}, {"470", 750}, {"320", 328}, {"650", 253}, {"230", 140}, {"460", 128},
      {"590", 75}, {"160", 74},    {"550", 72},   {"220", 62},  {"370", 47},  {"110", 24},  {"480", 19},  {"50", 7},
      {"330", 7},  {"350", 6},     {"270", 4},    {"440", 2},   {"140", 1},   {"290", 1}};
  EXPECT_LT(total_variation(pods(), published, [](const PodRecord& p) { return std::to_string(p.gpu_milli); }), 0.012);
}

TEST_F(SynthMarginals, CommonClasses) {
  // gpus/gpu_milli/cpu: the ten most frequent, and all others as one.
  const std::map<std::string, double> published = {{"1/810/3152", 1047},  {"1/1000/11300", 874}, {"1/1000/11400", 599},
                                                   {"1/1000/3152", 470},  {"1/470/11908", 388},  {"0/0/12500", 366},
                                                   {"1/470/8000", 360},   {"1/1000/12000", 326}, {"0/0/32000", 290},
                                                   {"1/1000/18708", 255}, {"other", 3177}};
  const auto key = [&](const PodRecord& p) {
    const std::string name = std::to_string(p.gpus) + "/" + std::to_string(p.gpu_milli) + "/" + std::to_string(p.cpu);
    return published.contains(name) ? name : "other";
  };
  EXPECT_LT(total_variation(pods(), published, key), 0.018);
}

TEST_F(SynthMarginals, MemoryGoesWithTheClass) {
  for (const PodRecord& pod : pods()) {
    if (pod.gpu_milli == 810 && pod.cpu == 3152) {
      EXPECT_EQ(pod.memory, 5600 * kMiB);
    }
  }
  const std::map<std::string, double> published = {{"5600", 1592}, {"49152", 1148}, {"30517", 787}, {"47104", 786},
                                                   {"48128", 534}, {"57344", 375},  {"other", 2930}};
  const auto key = [&](const PodRecord& p) {
    const std::string name = std::to_string(p.memory / kMiB);
    return published.contains(name) ? name : "other";
  };
  EXPECT_LT(total_variation(pods(), published, key), 0.018);
}

TEST_F(SynthMarginals, States) {
  const std::map<std::string, double> published = {
      {"Running", 5193}, {"Failed", 1870}, {"Pending", 897}, {"Succeeded", 192}};
  EXPECT_LT(total_variation(pods(), published, [](const PodRecord& p) { return p.status; }), 0.006);
  for (const PodRecord& pod : pods()) EXPECT_EQ(pod.wait.has_value(), pod.status != "Pending");
}

TEST_F(SynthMarginals, ServiceClasses) {
  const std::map<std::string, double> published = {{"LS", 4647}, {"BE", 3398}, {"Burstable", 100}, {"Guaranteed", 7}};
  EXPECT_LT(total_variation(pods(), published, [](const PodRecord& p) { return p.qos; }), 0.006);
}

TEST_F(SynthMarginals, LifetimesHaveThePublishedMedianAndTail) {
  std::vector<Nanoseconds> lives;
  for (const PodRecord& pod : pods()) lives.push_back(pod.wait.value_or(0) + *pod.duration);
  std::sort(lives.begin(), lives.end());
  const auto share_within = [&](std::int64_t seconds) {
    const auto end = std::upper_bound(lives.begin(), lives.end(), seconds * kSecond);
    return static_cast<double>(end - lives.begin()) / static_cast<double>(lives.size());
  };
  EXPECT_NEAR(share_within(540), 0.5, 0.01);  // the published median
  // Figures of the list: 25 % within 167 s, 90 % within 6,533 s, 99 % within 95,769 s. Straight lines between the
  // points of the profile are allowed 2 points in the dense middle.
  EXPECT_NEAR(share_within(167), 0.25, 0.02);
  EXPECT_NEAR(share_within(6533), 0.90, 0.02);
  EXPECT_NEAR(share_within(95769), 0.99, 0.005);
  EXPECT_LE(lives.back(), 12'902'960 * kSecond);  // the length of the recording
}

TEST_F(SynthMarginals, OfferedLoadIsTheOneAskedFor) {
  double work = 0;
  for (const PodRecord& pod : pods()) {
    work += static_cast<double>(pod.gpus * pod.gpu_milli) * static_cast<double>(*pod.duration / kSecond);
  }
  // The last of 100,000 uniform arrivals lies 1/100,000 of the span before its end on average.
  const double span = static_cast<double>(pods().back().submit / kSecond);
  EXPECT_NEAR(work / span / static_cast<double>(kStudyGpus), 0.85, 0.001);
}

TEST_F(SynthMarginals, ArrivalsArePoisson) {
  // In 100 equal slices of the span a Poisson process has counts whose variance is their mean (1,000). The ratio of the
  // two has standard deviation sqrt(2 / 99) = 0.14; the bound is five of them.
  const Nanoseconds span = pods().back().submit + 1;
  std::vector<double> counts(100, 0);
  for (const PodRecord& pod : pods()) counts[static_cast<std::size_t>(pod.submit / (span / 100 + 1))] += 1;
  double squares = 0;
  for (const double count : counts) squares += (count - 1000) * (count - 1000);
  EXPECT_NEAR(squares / 99 / 1000, 1.0, 0.71);
  EXPECT_TRUE(std::is_sorted(pods().begin(), pods().end(),
                             [](const PodRecord& a, const PodRecord& b) { return a.submit < b.submit; }));
}

TEST_F(SynthMarginals, ReaderGetsBackWhatWasWritten) {
  std::istringstream in(pods_csv(*trace_));
  const auto again = read_openb(in, "synth.csv");
  ASSERT_TRUE(again.ok()) << again.message();
  ASSERT_EQ(again->pods.size(), pods().size());
  const auto figures = [](const PodRecord& p) {
    return std::tie(p.name, p.cpu, p.memory, p.gpus, p.gpu_milli, p.gpu_spec, p.submit, p.duration, p.wait, p.status,
                    p.qos);
  };
  for (std::size_t i = 0; i < pods().size(); ++i) ASSERT_EQ(figures(again->pods[i]), figures(pods()[i])) << i;
}

TEST(SynthPods, SeedDecidesEveryByte) {
  EXPECT_EQ(pods_csv(*synth_pods(openb(), 500, 100'000, 0.5, 3)), pods_csv(*synth_pods(openb(), 500, 100'000, 0.5, 3)));
  EXPECT_NE(pods_csv(*synth_pods(openb(), 500, 100'000, 0.5, 3)), pods_csv(*synth_pods(openb(), 500, 100'000, 0.5, 4)));
}

TEST(SynthPods, OnePodIsEnough) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) EXPECT_TRUE(synth_pods(openb(), 1, 1000, 1.0, seed).ok());
}

TEST(SynthPods, BadFiguresAreRefused) {
  EXPECT_THAT(synth_pods(openb(), 0, 1000, 1.0, 1).message(), StartsWith("count is 0; allowed: 1 to "));
  EXPECT_THAT(synth_pods(openb(), kMaxSynthPods + 1, 1000, 1.0, 1).message(), StartsWith("count is "));
  EXPECT_THAT(synth_pods(openb(), 1, 0, 1.0, 1).message(), StartsWith("the cluster has no GPUs"));
  for (const double load : {0.0, -1.0, 101.0, std::nan("")}) {
    EXPECT_THAT(synth_pods(openb(), 1, 1000, load, 1).message(), StartsWith("load is ")) << load;
  }
  EXPECT_THAT(synth_pods(openb(), 1000, 1000, 1e-9, 1).message(), StartsWith("load 0.000000 spreads the pods"));
}

TEST(SynthProfiles, UnknownNameListsTheKnownOnes) {
  const auto profile = find_profile("philly");
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.message(), "unknown profile 'philly'; known: openb");
}

using Shape = std::tuple<std::string, std::int32_t, MilliCpu, std::int64_t>;

std::map<Shape, std::size_t> shapes(const std::vector<NodeRecord>& nodes) {
  std::map<Shape, std::size_t> out;
  for (const NodeRecord& node : nodes) ++out[{node.model, node.gpus, node.cpu, node.memory / kMiB}];
  return out;
}

TEST(SynthNodes, FullSizeIsThePublishedCluster) {
  // The 15 shapes of the study's 1,213 nodes.
  const std::map<Shape, std::size_t> published = {
      {{"G2", 8, 96000, 393216}, 549},     {{"T4", 2, 104000, 524288}, 387},    {{"P100", 2, 16000, 122880}, 107},
      {{"G3", 8, 128000, 786432}, 39},     {{"V100M16", 4, 32000, 131072}, 28}, {{"P100", 2, 64000, 262144}, 22},
      {{"V100M32", 8, 96000, 786432}, 21}, {{"V100M16", 1, 8000, 32768}, 19},   {{"T4", 4, 96000, 393216}, 17},
      {{"V100M32", 4, 48000, 376832}, 9},  {{"V100M16", 8, 64000, 262144}, 7},  {{"P100", 1, 8000, 61440}, 3},
      {{"P100", 2, 8000, 61440}, 2},       {{"A10", 1, 128000, 1048576}, 2},    {{"V100M16", 8, 82000, 344064}, 1}};
  EXPECT_EQ(shapes(synth_nodes(openb(), 1213, 1)), published);
  const auto doubled = shapes(synth_nodes(openb(), 2426, 1));
  for (const auto& [shape, count] : published) EXPECT_EQ(doubled.at(shape), 2 * count);
}

TEST(SynthNodes, SmallClustersKeepTheProportions) {
  // 10 x 549 / 1213 = 4.53 and so on: floors 4, 3 and zeros leave three; the largest remainders are P100 0.88,
  // G2 0.53 and then G3 0.32 (T4 has 0.19).
  const auto ten = shapes(synth_nodes(openb(), 10, 1));
  EXPECT_EQ(ten.size(), 4U);
  EXPECT_EQ(ten.at({"G2", 8, 96000, 393216}), 5U);
  EXPECT_EQ(ten.at({"T4", 2, 104000, 524288}), 3U);
  EXPECT_EQ(ten.at({"P100", 2, 16000, 122880}), 1U);
  EXPECT_EQ(ten.at({"G3", 8, 128000, 786432}), 1U);
}

TEST(SynthNodes, NamesSortInOrderAndTheSeedOnlyShuffles) {
  const auto nodes = synth_nodes(openb(), 12000, 1);
  ASSERT_EQ(nodes.size(), 12000U);
  EXPECT_EQ(nodes.front().name, "node-00000");
  EXPECT_TRUE(std::is_sorted(nodes.begin(), nodes.end(),
                             [](const NodeRecord& a, const NodeRecord& b) { return a.name < b.name; }));
  EXPECT_EQ(shapes(nodes), shapes(synth_nodes(openb(), 12000, 2)));
  const auto models = [](const std::vector<NodeRecord>& list) {
    std::string all;
    for (const NodeRecord& node : list) all += node.model + " ";
    return all;
  };
  EXPECT_NE(models(nodes), models(synth_nodes(openb(), 12000, 2)));
  EXPECT_TRUE(synth_nodes(openb(), 0, 1).empty());
}

std::string file_text(const std::string& path) {
  std::ifstream in(mortise::test::source_dir() + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Samples, AreWhatTheGeneratorMakes) {
  const auto nodes = synth_nodes(openb(), 150, 42);
  MilliGpu capacity = 0;
  for (const NodeRecord& node : nodes) capacity += node.gpus * kWholeGpu;
  std::ostringstream nodes_csv;
  write_node_csv(nodes_csv, nodes);
  EXPECT_EQ(file_text("config/clusters/sample-nodes.csv"), nodes_csv.str());
  const auto trace = synth_pods(openb(), 1024, capacity, 0.85, 42);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(file_text("traces/samples/sample-pods.csv"), pods_csv(*trace));
  MilliGpu demand = 0;
  for (const PodRecord& pod : trace->pods) demand += pod.gpus * pod.gpu_milli;
  EXPECT_NEAR(static_cast<double>(demand) / static_cast<double>(capacity), 0.98, 0.005);
}

}  // namespace
}  // namespace mortise::traces
