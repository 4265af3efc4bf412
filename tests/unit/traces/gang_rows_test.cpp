#include "traces/gang_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "traces/openb.h"

namespace mortise::traces {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kHeader =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gang,gang_size,role,topology_required,topology_preferred\n";

Result<Trace> trace_of(const std::string& rows, const std::string& header = kHeader) {
  std::istringstream in(header + rows);
  return read_openb(in, "jobs.csv");
}

Trace read(const std::string& rows, const std::string& header = kHeader) {
  const auto trace = trace_of(rows, header);
  EXPECT_TRUE(trace.ok()) << trace.message();
  return trace.ok() ? *trace : Trace{};
}

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> out;
  for (const PodRecord& pod : trace.pods) out.push_back(pod.name);
  return out;
}

void expect_refused(const std::string& rows, const std::string& message) {
  const auto trace = trace_of(rows);
  ASSERT_FALSE(trace.ok()) << rows;
  EXPECT_EQ(trace.message(), message);
}

TEST(GangRows, ARowStandsForSoManyPodsAndRowsOfOneGangAreItsRoles) {
  const Trace trace = read(
      "alone,1,1,1,500,,1,,,\n"
      "job-m,4000,1,0,0,job,1,master,rack,\n"
      "job-w,8000,1,8,1000,job,3,worker,rack,\n"
      "last,1,1,1,1000,,1,,,\n");
  EXPECT_THAT(names(trace), ElementsAre("alone", "job-m", "job-w-0", "job-w-1", "job-w-2", "last"));
  ASSERT_EQ(trace.gangs.size(), 1U);
  const GangRecord& gang = trace.gangs[0];
  EXPECT_EQ(gang.name, "job");
  EXPECT_EQ(gang.required_level, "rack");
  EXPECT_EQ(gang.preferred_level, "");
  EXPECT_EQ(gang.first(), 1U);
  EXPECT_EQ(gang.size(), 4U);
  ASSERT_EQ(gang.roles.size(), 2U);
  EXPECT_EQ(gang.roles[1].name, "worker");
  EXPECT_EQ(gang.roles[1].first, 2U);
  EXPECT_EQ(gang.roles[1].count, 3U);
  EXPECT_EQ(trace.pods[3].gpus, 8);
  EXPECT_EQ(trace.pods[3].gang, 0U);
  EXPECT_EQ(trace.pods[0].gang, std::nullopt);
  EXPECT_EQ(trace.pods[5].gang, std::nullopt);
}

TEST(GangRows, SizeAloneIsEnough) {
  const Trace trace =
      read("a,1,1,1,1000,2\nb,1,1,1,1000,1\n", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gang_size\n");
  EXPECT_THAT(names(trace), ElementsAre("a-0", "a-1", "b"));
  ASSERT_EQ(trace.gangs.size(), 1U);
  EXPECT_EQ(trace.gangs[0].name, "a");
}

TEST(GangRows, PodsMayBeListedOneByOne) {
  const Trace trace = read("a,1,1,1,1000,g\nb,1,1,1,1000,g\nc,1,1,1,1000,h\nd,1,1,1,1000,h\n",
                           "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gang\n");
  EXPECT_THAT(names(trace), ElementsAre("a", "b", "c", "d"));
  ASSERT_EQ(trace.gangs.size(), 2U);
  EXPECT_EQ(trace.gangs[1].first(), 2U);
  EXPECT_EQ(trace.gangs[1].size(), 2U);
}

TEST(GangRows, AGangOfOneIsThatPod) {
  const Trace trace = read("a,1,1,1,1000,g,1,,rack,\nb,1,1,1,1000,h,1,,,\nc,1,1,1,1000,h,1,,,\n");
  ASSERT_EQ(trace.gangs.size(), 1U);
  EXPECT_EQ(trace.pods[0].gang, std::nullopt);
  EXPECT_EQ(trace.pods[1].gang, 0U);
  EXPECT_EQ(trace.gangs[0].name, "h");
}

TEST(GangRows, TimesAndGangsGoTogether) {
  const Trace trace = read("a,1,1,1,1000,,LS,Running,10,110,20,2\n",
                           "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
                           "deletion_time,scheduled_time,gang_size\n");
  ASSERT_EQ(trace.pods.size(), 2U);
  EXPECT_EQ(trace.pods[1].submit, 10 * kSecond);
  EXPECT_EQ(trace.pods[1].duration, 90 * kSecond);
}

TEST(GangRows, ATraceWithoutTheColumnsHasNoGangs) {
  EXPECT_THAT(read("a,1,1,1,1000\n", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n").gangs, IsEmpty());
}

TEST(GangRows, MistakesSayWhereAndWhatIsAllowed) {
  expect_refused("a,1,1,1,1000,,0,,,\n", "jobs.csv:2: gang_size is '0'; allowed: a whole number from 1 to 16384");
  expect_refused("a,1,1,1,1000,,16385,,,\n",
                 "jobs.csv:2: gang_size is '16385'; allowed: a whole number from 1 to 16384");
  expect_refused("a,1,1,1,1000,,,,,\n", "jobs.csv:2: gang_size is ''; allowed: a whole number from 1 to 16384");
  expect_refused("a,1,1,1,1000,my job,2,,,\n",
                 "jobs.csv:2: gang is 'my job'; allowed: a name without blanks, commas and quotes");
  expect_refused("a,1,1,1,1000,g,2,,rack,\nb,1,1,1,1000,g,2,,block,\n",
                 "jobs.csv:3: topology_required is 'block', but 'rack' in the gang's rows before; allowed: the same in "
                 "all rows of gang 'g'");
  expect_refused("a,1,1,1,1000,g,16000,,,\nb,1,1,1,1000,g,385,,,\n",
                 "jobs.csv:3: gang 'g' has 16385 pods; allowed: 1 to 16384");
}

TEST(GangRows, RowsOfAGangStandOneAfterAnother) {
  expect_refused("a,1,1,1,1000,g,2,,,\nb,1,1,1,1000,,1,,,\nc,1,1,1,1000,g,2,,,\n",
                 "jobs.csv:4: gang 'g' is already on line 2; allowed: each name once");
}

TEST(GangRows, NamesOfPodsMadeOfARowAreTaken) {
  expect_refused("a,1,1,1,1000,,2,,,\na-1,1,1,1,1000,,1,,,\n",
                 "jobs.csv:3: pod 'a-1' is already on line 2; allowed: each name once");
  expect_refused("g,1,1,1,1000,,1,,,\na,1,1,1,1000,g,2,,,\n",
                 "jobs.csv:3: gang 'g' is already on line 2; allowed: each name once");
}

}  // namespace
}  // namespace mortise::traces
