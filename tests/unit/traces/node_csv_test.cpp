#include "traces/node_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace mortise::traces {
namespace {

using testing::StartsWith;

constexpr const char* kHeader = "sn,cpu_milli,memory_mib,gpu,model\n";

Result<std::vector<NodeRecord>> nodes_of(const std::string& rows) {
  std::istringstream in(kHeader + rows);
  return read_node_csv(in, "nodes.csv");
}

void expect_refused(const std::string& rows, const std::string& message) {
  const auto nodes = nodes_of(rows);
  ASSERT_FALSE(nodes.ok()) << rows;
  EXPECT_THAT(nodes.message(), StartsWith(message));
}

TEST(NodeCsv, UnitsAreMilliCoresAndMebibytes) {
  const auto nodes = nodes_of("n1,64000,262144,2,P100\nn2,32000,1,0,\n");
  ASSERT_TRUE(nodes.ok()) << nodes.message();
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].name, "n1");
  EXPECT_EQ((*nodes)[0].cpu, 64000);
  EXPECT_EQ((*nodes)[0].memory, 274877906944);  // 262144 x 1024 x 1024
  EXPECT_EQ((*nodes)[0].gpus, 2);
  EXPECT_EQ((*nodes)[0].model, "P100");
  EXPECT_EQ((*nodes)[1].memory, 1048576);
  EXPECT_EQ((*nodes)[1].gpus, 0);
  EXPECT_EQ((*nodes)[1].model, "");
}

TEST(NodeCsv, ModelOfANodeWithoutGpusIsDropped) {
  const auto nodes = nodes_of("n1,1,1,0,T4\n");
  ASSERT_TRUE(nodes.ok()) << nodes.message();
  EXPECT_EQ((*nodes)[0].model, "");
}

TEST(NodeCsv, DuplicateNamesAreRefusedWithBothLines) {
  expect_refused("n1,1,1,0,\nn2,1,1,0,\nn1,2,2,0,\n",
                 "nodes.csv:4: node 'n1' is already on line 2; allowed: each name once");
}

TEST(NodeCsv, BadNumbersAreRefused) {
  expect_refused("n1,-1,1,0,\n", "nodes.csv:2: cpu_milli is '-1'; allowed: a whole number from 0 to 1000000000");
  expect_refused("n1,1,1.5,0,\n", "nodes.csv:2: memory_mib is '1.5'; allowed: a whole number");
  expect_refused("n1,1,1,129,T4\n", "nodes.csv:2: gpu is '129'; allowed: a whole number from 0 to 128");
  expect_refused("n1,1,1,,T4\n", "nodes.csv:2: gpu is ''");
}

TEST(NodeCsv, MemoryOverflowIsRefused) {
  // 2^43 MiB is 2^63 bytes, one more than fits.
  expect_refused("n1,1,8796093022208,0,\n", "nodes.csv:2: memory_mib is '8796093022208'; allowed:");
  // A PiB each: 2^50 bytes, so the 8,192nd node makes 2^63.
  std::string rows;
  for (int i = 0; i < 8192; ++i) rows += "n" + std::to_string(i) + ",1,1073741824,0,\n";
  expect_refused(rows, "nodes.csv:8193: the memory of all nodes up to here overflows");
}

TEST(NodeCsv, GpusWithoutAModelAreRefused) {
  expect_refused("n1,1,1,8,\n", "nodes.csv:2: node 'n1' has 8 GPUs and no model");
}

TEST(NodeCsv, TruncatedFileIsRefused) {
  expect_refused("n1,1,1,0,\nn2,10", "nodes.csv:3: the row has 2 fields; allowed: 5");
}

TEST(NodeCsv, NamesAreOneWord) {
  expect_refused(",1,1,0,\n", "nodes.csv:2: sn is ''; allowed: a name");
  expect_refused("a b,1,1,0,\n", "nodes.csv:2: sn is 'a b'");
  expect_refused("\"a,b\",1,1,0,\n", "nodes.csv:2: sn is 'a,b'");
}

TEST(NodeCsv, EmptyFileAndEmptyListAreRefused) {
  expect_refused("", "nodes.csv:1: no nodes after the header");
  std::istringstream nothing;
  const auto nodes = read_node_csv(nothing, "nodes.csv");
  ASSERT_FALSE(nodes.ok());
  EXPECT_THAT(nodes.message(), StartsWith("nodes.csv: the file is empty"));
}

TEST(NodeCsv, MissingColumnIsNamed) {
  std::istringstream in("sn,cpu_milli,memory_mib,gpu\nn1,1,1,1\n");
  const auto nodes = read_node_csv(in, "nodes.csv");
  ASSERT_FALSE(nodes.ok());
  EXPECT_THAT(nodes.message(), StartsWith("nodes.csv:1: the column model is missing"));
}

TEST(NodeCsv, WritingGivesTheSameFile) {
  const std::string rows = "n1,64000,262144,2,P100\nn2,32000,1,0,\nn3,1,1,1,\"odd,model\"\n";
  const auto nodes = nodes_of(rows);
  ASSERT_TRUE(nodes.ok()) << nodes.message();
  std::ostringstream out;
  write_node_csv(out, *nodes);
  EXPECT_EQ(out.str(), kHeader + rows);
}

}  // namespace
}  // namespace mortise::traces
