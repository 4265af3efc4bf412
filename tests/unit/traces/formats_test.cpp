#include "traces/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <streambuf>
#include <string>

namespace mortise::traces {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kPods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-1,1,1,1,500\np-2,1,1,1,600\n";

/// Gives one byte at a time and cannot seek, as the worst of pipes.
class DripBuffer : public std::streambuf {
 public:
  explicit DripBuffer(std::string bytes) : bytes_(std::move(bytes)) {}

 protected:
  int_type underflow() override {
    if (at_ == bytes_.size()) return traits_type::eof();
    setg(&bytes_[at_], &bytes_[at_], &bytes_[at_] + 1);
    return traits_type::to_int_type(bytes_[at_++]);
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

TEST(TraceFormats, EveryRowIsComplete) {
  ASSERT_FALSE(trace_formats().empty());
  for (const TraceFormat& format : trace_formats()) {
    EXPECT_FALSE(format.name.empty());
    EXPECT_FALSE(format.description.empty());
    EXPECT_FALSE(format.detect("")) << format.name;
  }
}

TEST(TraceFormats, OpenbIsKnownByItsHeader) {
  std::istringstream in(kPods);
  const auto trace = read_trace(in, "some.csv");
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_EQ(trace->pods.size(), 2U);
  EXPECT_EQ(trace->name, "some");
}

TEST(TraceFormats, PipesCanBeRead) {
  DripBuffer drip(kPods);
  std::istream in(&drip);
  const auto trace = read_trace(in, "pipe");
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_EQ(trace->pods[1].gpu_milli, 600);
}

TEST(TraceFormats, UnknownFormatListsTheKnownOnes) {
  std::istringstream in("sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,1,T4\n");
  const auto trace = read_trace(in, "nodes.csv");
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.message(), AllOf(StartsWith("nodes.csv:1: unknown trace format; known: "), HasSubstr("openb (")));
}

TEST(TraceFormats, LinesAreCountedFromTheHeader) {
  std::istringstream in(std::string(kPods) + "p-3,1\n");
  const auto trace = read_trace(in, "t.csv");
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.message(), StartsWith("t.csv:4: "));
}

TEST(TraceFormats, HeaderWithoutNewlineIsAnEmptyTrace) {
  std::istringstream in("name,cpu_milli,memory_mib,num_gpu,gpu_milli");
  const auto trace = read_trace(in, "t.csv");
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.message(), StartsWith("t.csv:1: no pods after the header"));
}

TEST(TraceFormats, EmptyMissingAndUnreadableFilesAreRefused) {
  std::istringstream nothing;
  EXPECT_EQ(read_trace(nothing, "t.csv").message(), "t.csv: the file is empty; allowed: a trace");
  EXPECT_THAT(read_trace_file("/nonexistent/t.csv").message(), StartsWith("/nonexistent/t.csv: cannot be opened: "));
  EXPECT_EQ(read_trace_file("/").message(), "/: cannot be read");
}

}  // namespace
}  // namespace mortise::traces
