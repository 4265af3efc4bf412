#include "traces/openb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>

namespace mortise::traces {
namespace {

using testing::StartsWith;

constexpr const char* kHeader =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

Result<Trace> trace_of(const std::string& rows) {
  std::istringstream in(kHeader + rows);
  return read_openb(in, "pods.csv");
}

/// The only pod of a trace of one row.
PodRecord pod_of(const std::string& row) {
  const auto trace = trace_of(row + "\n");
  EXPECT_TRUE(trace.ok()) << trace.message();
  return trace.ok() ? trace->pods.at(0) : PodRecord{};
}

void expect_refused(const std::string& rows, const std::string& message) {
  const auto trace = trace_of(rows);
  ASSERT_FALSE(trace.ok()) << rows;
  EXPECT_THAT(trace.message(), StartsWith(message));
}

TEST(Openb, ReadsAllColumns) {
  const PodRecord pod = pod_of("p-1,12000,16384,1,220,T4|P100,LS,Running,10,9000,12");
  EXPECT_EQ(pod.name, "p-1");
  EXPECT_EQ(pod.cpu, 12000);
  EXPECT_EQ(pod.memory, 17179869184);  // 16 GiB
  EXPECT_EQ(pod.gpus, 1);
  EXPECT_EQ(pod.gpu_milli, 220);
  EXPECT_EQ(pod.gpu_spec, "T4|P100");
  EXPECT_EQ(pod.qos, "LS");
  EXPECT_EQ(pod.status, "Running");
  EXPECT_EQ(pod.submit, 10 * kSecond);
  EXPECT_EQ(pod.wait, 2 * kSecond);
  EXPECT_EQ(pod.duration, 8988 * kSecond);  // 9000 - 12
}

TEST(Openb, APodThatNeverStartedLastsFromItsCreation) {
  const PodRecord pod = pod_of("p-1,4000,15258,1,220,,BE,Pending,15,75,");
  EXPECT_EQ(pod.submit, 15 * kSecond);
  EXPECT_EQ(pod.wait, std::nullopt);
  EXPECT_EQ(pod.duration, 60 * kSecond);
}

TEST(Openb, ZeroLengthPodIsTaken) {
  EXPECT_EQ(pod_of("p-1,1,1,0,0,,BE,Failed,61,61,61").duration, 0);
}

TEST(Openb, MissingDeletionMeansUnknownDuration) {
  const PodRecord pod = pod_of("p-1,1,1,0,0,,BE,Running,61,,62");
  EXPECT_EQ(pod.duration, std::nullopt);
  EXPECT_EQ(pod.wait, 1 * kSecond);
}

TEST(Openb, ShareOfOneGpuIsCappedAtAWholeOne) {
  EXPECT_EQ(pod_of("p-1,1,1,1,1000,,,,0,1,0").gpu_milli, 1000);
  EXPECT_EQ(pod_of("p-1,1,1,1,1001,,,,0,1,0").gpu_milli, 1000);
}

TEST(Openb, PodsWithSeveralGpusTakeWholeOnes) {
  EXPECT_EQ(pod_of("p-1,1,1,2,500,,,,0,1,0").gpu_milli, 1000);
  EXPECT_EQ(pod_of("p-1,1,1,8,0,,,,0,1,0").gpu_milli, 1000);
}

TEST(Openb, GpuColumnsOfAPodWithoutGpusMeanNothing) {
  const PodRecord pod = pod_of("p-1,1,1,0,500,T4,,,0,1,0");
  EXPECT_EQ(pod.gpus, 0);
  EXPECT_EQ(pod.gpu_milli, 0);
  EXPECT_EQ(pod.gpu_spec, "");
}

TEST(Openb, OneGpuOfWhichNothingIsAskedIsRefused) {
  expect_refused("p-1,1,1,1,0,,,,0,1,0\n",
                 "pods.csv:2: pod 'p-1' has num_gpu 1 and gpu_milli 0; allowed: gpu_milli from 1");
}

TEST(Openb, FirstFiveColumnsAreEnough) {
  std::istringstream in("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-1,12000,16384,2,1000\n");
  const auto trace = read_openb(in, "x/openb_pod_list_multigpu20.csv");
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_EQ(trace->name, "multigpu20");
  EXPECT_EQ(trace->pods[0].gpus, 2);
  EXPECT_EQ(trace->pods[0].submit, 0);
  EXPECT_EQ(trace->pods[0].duration, std::nullopt);
}

TEST(Openb, OtherSubsetsOfTheColumnsAreRefused) {
  std::istringstream in("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np-1,12000,16384,2,1000,\n");
  const auto trace = read_openb(in, "pods.csv");
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.message(), StartsWith("pods.csv:1: the column qos is missing; allowed: name,cpu_milli,memory_mib,"
                                          "num_gpu,gpu_milli or name,"));
}

TEST(Openb, DuplicateNamesAreRefusedWithBothLines) {
  expect_refused("p-1,1,1,0,0,,,,0,1,0\np-2,1,1,0,0,,,,0,1,0\np-1,1,1,0,0,,,,0,1,0\n",
                 "pods.csv:4: pod 'p-1' is already on line 2; allowed: each name once");
}

TEST(Openb, TimesThatRunBackwardsAreRefused) {
  expect_refused("p-1,1,1,0,0,,,,10,20,9\n", "pods.csv:2: scheduled_time is 9, before the pod's 10");
  expect_refused("p-1,1,1,0,0,,,,10,11,12\n", "pods.csv:2: deletion_time is 11, before the pod's 12");
  expect_refused("p-1,1,1,0,0,,,,10,9,\n", "pods.csv:2: deletion_time is 9, before the pod's 10");
}

TEST(Openb, BadNumbersAreRefused) {
  expect_refused("p-1,x,1,0,0,,,,0,1,0\n", "pods.csv:2: cpu_milli is 'x'");
  expect_refused("p-1,1,99999999999,0,0,,,,0,1,0\n", "pods.csv:2: memory_mib is '99999999999'");
  expect_refused("p-1,1,1,-1,0,,,,0,1,0\n", "pods.csv:2: num_gpu is '-1'; allowed: a whole number from 0 to 128");
  expect_refused("p-1,1,1,1,0.5,,,,0,1,0\n", "pods.csv:2: gpu_milli is '0.5'");
  expect_refused("p-1,1,1,0,0,,,,,1,0\n", "pods.csv:2: creation_time is ''");
  expect_refused("p-1,1,1,0,0,,,,0,1e3,0\n", "pods.csv:2: deletion_time is '1e3'");
  // 2^63 nanoseconds are 292 years; what is near them is refused before it can overflow.
  expect_refused("p-1,1,1,0,0,,,,0,9223372036854775807,0\n", "pods.csv:2: deletion_time is '9223372036854775807'");
}

TEST(Openb, TruncatedFileIsRefused) {
  expect_refused("p-1,1,1,0,0,,,,0,1,0\np-2,1,1,0,0,,LS,Run", "pods.csv:3: the row has 8 fields; allowed: 11");
}

TEST(Openb, EmptyTraceIsRefused) {
  expect_refused("", "pods.csv:1: no pods after the header; allowed: one row or more");
}

TEST(Openb, TraceNameIsTheFileNameWithoutItsUsualParts) {
  EXPECT_EQ(openb_trace_name("/a/b/openb_pod_list_default.csv"), "default");
  EXPECT_EQ(openb_trace_name("openb_pod_list_gpuspec33.csv"), "gpuspec33");
  EXPECT_EQ(openb_trace_name("mine.csv"), "mine");
  EXPECT_EQ(openb_trace_name("-"), "-");
}

TEST(Openb, WritingGivesTheSameFile) {
  const std::string rows =
      "p-1,12000,16384,1,220,V100M16|V100M32|V100M32,LS,Running,10,9000,12\n"
      "p-2,4000,15258,0,0,,BE,Pending,15,75,\n"
      "p-3,4000,15258,8,1000,,\"odd,\"\"class\"\"\",Running,15,,16\n";
  const auto trace = trace_of(rows);
  ASSERT_TRUE(trace.ok()) << trace.message();
  std::ostringstream out;
  write_openb_pods(out, trace->pods);
  EXPECT_EQ(out.str(), kHeader + rows);
}

}  // namespace
}  // namespace mortise::traces
