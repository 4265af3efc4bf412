#include "traces/arrival.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace mortise::traces {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

PodRecord pod(std::string name, std::int32_t gpus, MilliGpu milli) {
  PodRecord record;
  record.name = std::move(name);
  record.gpus = gpus;
  record.gpu_milli = milli;
  return record;
}

std::vector<std::string> names(const std::vector<Arrival>& arrivals) {
  std::vector<std::string> out;
  for (const Arrival& arrival : arrivals) out.push_back(arrival.name);
  return out;
}

MilliGpu demand(const Trace& trace, const std::vector<Arrival>& arrivals) {
  MilliGpu total = 0;
  for (const Arrival& arrival : arrivals) total += trace.pods[arrival.pod].gpus * trace.pods[arrival.pod].gpu_milli;
  return total;
}

TEST(Inflate, DemandOnTargetChangesNothing) {
  const Trace trace{"t", {pod("b", 1, 500), pod("a", 1, 1000)}};
  const auto arrivals = inflate(trace, 1.0, 1500, 1);
  ASSERT_TRUE(arrivals.ok());
  EXPECT_THAT(names(*arrivals), testing::UnorderedElementsAre("a", "b"));
}

TEST(Inflate, LastDrawIsJudgedByTheShareOfOneGpu) {
  // 8,000 milli, target 9,000. The only draw adds 1,000 per GPU, which does not exceed 9,000, so it is taken and makes
  // 16,000; the next one would make 17,000 by that count and stops. Counting 8,000 would have stopped at once.
  const Trace trace{"t", {pod("a", 8, 1000)}};
  const auto arrivals = inflate(trace, 1.0, 9000, 1);
  ASSERT_TRUE(arrivals.ok());
  EXPECT_THAT(names(*arrivals), ElementsAre("a", "a-clone-1"));
}

TEST(Inflate, RepeatsAreNumberedFromOne) {
  const Trace trace{"t", {pod("a", 1, 1000)}};
  const auto arrivals = inflate(trace, 1.5, 2000, 1);
  ASSERT_TRUE(arrivals.ok());
  EXPECT_THAT(names(*arrivals), ElementsAre("a", "a-clone-1", "a-clone-2"));
}

TEST(Inflate, CloneNamesNeverMeetAPodOfTheTrace) {
  const Trace trace{"t", {pod("a", 1, 1000), pod("a-clone-1", 0, 0)}};
  const auto arrivals = inflate(trace, 1.0, 5000, 1);
  ASSERT_TRUE(arrivals.ok());
  std::map<std::string, int> seen;
  for (const Arrival& arrival : *arrivals) ++seen[arrival.name];
  for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  EXPECT_TRUE(seen.contains("a-clone-2"));
}

TEST(Inflate, TooMuchDemandIsThinnedInOrder) {
  Trace trace{"t", {}};
  for (int i = 0; i < 20; ++i) trace.pods.push_back(pod("p" + std::to_string(10 + i), 1, 1000));
  const auto all = inflate(trace, 1.0, 20000, 7);
  const auto some = inflate(trace, 1.0, 12000, 7);
  ASSERT_TRUE(all.ok());
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->size(), 12U);
  std::size_t at = 0;  // what is left is a subsequence of the shuffled list
  for (const Arrival& arrival : *all) {
    if (at < some->size() && (*some)[at].pod == arrival.pod) ++at;
  }
  EXPECT_EQ(at, some->size());
}

TEST(Inflate, EveryPodIsEquallyLikelyToLeave) {
  // Ten equal pods, four leave, 20,000 seeds: each pod is missing in 8,000 runs on average, standard deviation
  // sqrt(20000 x 0.4 x 0.6) = 69; the bound is seven of them.
  Trace trace{"t", {}};
  for (int i = 0; i < 10; ++i) trace.pods.push_back(pod("p" + std::to_string(i), 1, 1000));
  std::vector<int> missing(10, 20000);
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const auto arrivals = inflate(trace, 1.0, 6000, seed);
    ASSERT_TRUE(arrivals.ok());
    for (const Arrival& arrival : *arrivals) --missing[arrival.pod];
  }
  for (const int times : missing) EXPECT_NEAR(times, 8000, 483);
}

TEST(Inflate, EveryOrderIsEquallyLikely) {
  // Three pods, 12,000 seeds: each of the 6 orders 2,000 times on average, standard deviation 41; bound seven of them.
  const Trace trace{"t", {pod("a", 1, 1000), pod("b", 1, 1000), pod("c", 1, 1000)}};
  std::map<std::vector<std::string>, int> orders;
  for (std::uint64_t seed = 0; seed < 12000; ++seed) {
    const auto arrivals = inflate(trace, 1.0, 3000, seed);
    ASSERT_TRUE(arrivals.ok());
    ++orders[names(*arrivals)];
  }
  ASSERT_EQ(orders.size(), 6U);
  for (const auto& [order, times] : orders) EXPECT_NEAR(times, 2000, 287);
}

TEST(Inflate, TailIsDrawnFromTheOriginalsAlone) {
  // Two equal pods and 20 draws: the first pod comes 10 times on average with variance 20 x 1/4 = 5. Drawing from the
  // growing list instead would give 5 x 22 / 3 = 37. Over 4,000 seeds the mean has standard deviation 0.035 and the
  // variance 0.11; the bounds are seven of them.
  const Trace trace{"t", {pod("a", 1, 1000), pod("b", 1, 1000)}};
  double sum = 0;
  double squares = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const auto arrivals = inflate(trace, 1.0, 22000, seed);
    ASSERT_TRUE(arrivals.ok());
    ASSERT_EQ(arrivals->size(), 22U);
    const auto times =
        std::count_if(arrivals->begin() + 2, arrivals->end(), [](const Arrival& x) { return x.pod == 0; });
    sum += static_cast<double>(times);
    squares += static_cast<double>((times - 10) * (times - 10));
  }
  EXPECT_NEAR(sum / 4000, 10, 0.25);
  EXPECT_NEAR(squares / 4000, 5, 0.8);
}

TEST(Inflate, DoesNotDependOnTheOrderOfTheFile) {
  const Trace one{"t", {pod("a", 1, 300), pod("b", 1, 200), pod("c", 2, 1000)}};
  const Trace other{"t", {pod("c", 2, 1000), pod("a", 1, 300), pod("b", 1, 200)}};
  const auto first = inflate(one, 2.0, 4000, 5);
  const auto second = inflate(other, 2.0, 4000, 5);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(names(*first), names(*second));
}

TEST(Inflate, SeedsDiffer) {
  Trace trace{"t", {}};
  for (int i = 0; i < 50; ++i) trace.pods.push_back(pod("p" + std::to_string(i), 1, 1000));
  EXPECT_NE(names(*inflate(trace, 1.0, 60000, 1)), names(*inflate(trace, 1.0, 60000, 2)));
  EXPECT_EQ(names(*inflate(trace, 1.0, 60000, 1)), names(*inflate(trace, 1.0, 60000, 1)));
}

TEST(Inflate, TraceWithoutGpuPodsIsRefusedInsteadOfDrawnForever) {
  const Trace trace{"cpu-only", {pod("a", 0, 0)}};
  const auto arrivals = inflate(trace, 1.3, 1000, 1);
  ASSERT_FALSE(arrivals.ok());
  EXPECT_THAT(arrivals.message(), StartsWith("trace 'cpu-only' asks for no GPUs"));
  EXPECT_TRUE(inflate(trace, 1.3, 0, 1).ok());  // nothing to reach
}

TEST(Inflate, TooManyArrivalsAreRefused) {
  const Trace trace{"t", {pod("a", 1, 1)}};
  const auto arrivals = inflate(trace, 1.0, 2 * static_cast<MilliGpu>(kMaxArrivals), 1);
  ASSERT_FALSE(arrivals.ok());
  EXPECT_THAT(arrivals.message(), HasSubstr("more than 10000000 arrivals"));
}

TEST(Inflate, RatioOutOfRangeIsRefused) {
  const Trace trace{"t", {pod("a", 1, 1000)}};
  for (const double ratio : {0.0, -1.0, 1001.0}) EXPECT_FALSE(inflate(trace, ratio, 1000, 1).ok()) << ratio;
}

TEST(ReadOrder, NamesAreTakenAsTheyCome) {
  const Trace trace{"t", {pod("a", 1, 300), pod("b", 1, 200)}};
  std::istringstream in("b\na\r\n\nb\nb");
  const auto arrivals = read_order(trace, in, "order.txt");
  ASSERT_TRUE(arrivals.ok()) << arrivals.message();
  EXPECT_THAT(names(*arrivals), ElementsAre("b", "a", "b-clone-1", "b-clone-2"));
  EXPECT_EQ((*arrivals)[0].pod, 1U);
  EXPECT_EQ(demand(trace, *arrivals), 900);
}

TEST(ReadOrder, UnknownNamesAreRefusedWithTheirLine) {
  const Trace trace{"t", {pod("a", 1, 300)}};
  std::istringstream in("a\n\nx\n");
  const auto arrivals = read_order(trace, in, "order.txt");
  ASSERT_FALSE(arrivals.ok());
  EXPECT_THAT(arrivals.message(), StartsWith("order.txt:3: no pod 'x' in trace 't'; allowed: "));
}

TEST(ReadOrder, EmptyListIsRefused) {
  const Trace trace{"t", {pod("a", 1, 300)}};
  std::istringstream in("\n");
  EXPECT_THAT(read_order(trace, in, "order.txt").message(), StartsWith("order.txt: no pod names"));
}

TEST(ParseArrival, KnowsItsForms) {
  const auto inflation = parse_arrival("inflate:1.3");
  ASSERT_TRUE(inflation.ok());
  EXPECT_DOUBLE_EQ(std::get<Inflate>(*inflation).ratio, 1.3);
  const auto order = parse_arrival("order:a:b.txt");
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(std::get<OrderFile>(*order).path, "a:b.txt");
}

TEST(ParseArrival, AnythingElseIsRefusedAndSaysWhatIsAllowed) {
  for (const char* bad : {"", "inflate", "inflate:", "inflate:0", "inflate:-1", "inflate:1.3x", "inflate:nan",
                          "inflate:inf", "inflate:1001", "order:", "Order:f", "as-recorded"}) {
    const auto spec = parse_arrival(bad);
    ASSERT_FALSE(spec.ok()) << bad;
    EXPECT_EQ(spec.message(), "arrival '" + std::string(bad) +
                                  "' is not known; allowed: inflate:RATIO (0 < RATIO <= 1000), order:FILE (names of "
                                  "pods and gangs, one a line)");
  }
}

/// A gang of two pods of four GPUs and a pod of one.
Trace gang_and_pod() {
  Trace trace{"t", {pod("g-0", 4, 1000), pod("g-1", 4, 1000), pod("p", 1, 1000)}};
  trace.gangs.push_back({"g", {{"", 0, 2}}, "", ""});
  trace.pods[0].gang = trace.pods[1].gang = 0;
  return trace;
}

TEST(GangArrivals, AGangComesOnceForAllItsPods) {
  const auto arrivals = inflate(gang_and_pod(), 1.0, 9000, 1);
  ASSERT_TRUE(arrivals.ok()) << arrivals.message();
  EXPECT_THAT(names(*arrivals), testing::UnorderedElementsAre("g", "p"));
}

TEST(GangArrivals, AGangThatIsDrawnAgainIsNumberedAsAWhole) {
  Trace trace = gang_and_pod();
  trace.pods.pop_back();
  // 8 GPUs; a draw counts with one GPU: 9 and 17 stay within 20 by that, 25 would not.
  const auto arrivals = inflate(trace, 1.0, 20000, 1);
  ASSERT_TRUE(arrivals.ok()) << arrivals.message();
  EXPECT_THAT(names(*arrivals), ElementsAre("g", "g-clone-1", "g-clone-2"));
  EXPECT_EQ((*arrivals)[2].pod, 0U);
  EXPECT_EQ((*arrivals)[2].clone, 2U);
}

TEST(GangArrivals, AGangThatIsTooMuchIsLeftOutAsAWhole) {
  // 9 GPUs asked for, 1 wanted: whichever goes first, the gang goes.
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto arrivals = inflate(gang_and_pod(), 1.0, 1000, seed);
    ASSERT_TRUE(arrivals.ok());
    for (const std::string& name : names(*arrivals)) EXPECT_EQ(name, "p");
  }
}

TEST(GangArrivals, ACloneIsNotNamedAsAPodOfTheTrace) {
  Trace trace = gang_and_pod();
  trace.pods[2].name = "g-1-clone-1";
  std::istringstream in("g\ng\n");
  const auto arrivals = read_order(trace, in, "o.txt");
  ASSERT_TRUE(arrivals.ok());
  EXPECT_THAT(names(*arrivals), ElementsAre("g", "g-clone-2"));
}

TEST(GangArrivals, AnOrderNamesGangsNotTheirPods) {
  std::istringstream good("p\ng\n");
  const auto arrivals = read_order(gang_and_pod(), good, "o.txt");
  ASSERT_TRUE(arrivals.ok());
  EXPECT_THAT(names(*arrivals), ElementsAre("p", "g"));
  std::istringstream member("p\ng-1\n");
  EXPECT_EQ(read_order(gang_and_pod(), member, "o.txt").message(),
            "o.txt:2: pod 'g-1' comes with its gang; allowed: 'g' for all its pods");
  std::istringstream nobody("q\n");
  EXPECT_EQ(read_order(gang_and_pod(), nobody, "o.txt").message(),
            "o.txt:1: no pod 'q' in trace 't'; allowed: names of its gangs and of pods in none, one a line");
}

}  // namespace
}  // namespace mortise::traces
