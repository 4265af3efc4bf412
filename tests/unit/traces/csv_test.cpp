#include "traces/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace mortise::traces {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kColumns[] = {"a", "b", "c", "d"};

/// All rows as lists of a, b, c, d; or the first error.
Result<std::vector<std::vector<std::string>>> rows_of(const std::string& file) {
  std::istringstream in(file);
  CsvReader csv(in, "f.csv");
  if (const Status header = csv.read_header(kColumns, 2); !header) return header.error();
  std::vector<std::vector<std::string>> rows;
  while (true) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) return rows;
    rows.emplace_back();
    for (std::size_t column = 0; column < 4; ++column) rows.back().emplace_back(csv.text(column));
  }
}

void expect_rows(const std::string& file, const std::vector<std::vector<std::string>>& expected) {
  const auto rows = rows_of(file);
  ASSERT_TRUE(rows.ok()) << rows.message();
  EXPECT_EQ(*rows, expected);
}

void expect_refused(const std::string& file, const std::string& message) {
  const auto rows = rows_of(file);
  ASSERT_FALSE(rows.ok()) << file;
  EXPECT_THAT(rows.message(), StartsWith(message));
}

TEST(CsvReader, ReadsRows) {
  expect_rows("a,b,c,d\n1,2,3,4\n5,,7,\n", {{"1", "2", "3", "4"}, {"5", "", "7", ""}});
}

TEST(CsvReader, TheLastNewlineMayBeMissing) {
  expect_rows("a,b\n1,2", {{"1", "2", "", ""}});
}

TEST(CsvReader, WindowsLineEndsAndByteOrderMarkAreTolerated) {
  expect_rows(
      "\xEF\xBB\xBF"
      "a,b\r\n1,2\r\n",
      {{"1", "2", "", ""}});
}

TEST(CsvReader, BlankLinesAreSkippedAndCounted) {
  expect_rows("\na,b\n\n1,2\n\n", {{"1", "2", "", ""}});
  expect_refused("a,b\n\n\n1\n", "f.csv:4: the row has 1 fields; allowed: 2");
}

TEST(CsvReader, QuotedFieldsFollowRfc4180) {
  expect_rows("\"a\",b,c,d\n\"x,y\",\"say \"\"no\"\"\",\"\",z\n", {{"x,y", "say \"no\"", "", "z"}});
}

TEST(CsvReader, ColumnsMayComeInAnyOrder) {
  expect_rows("b,a\n1,2\n", {{"2", "1", "", ""}});
}

TEST(CsvReader, RowOfAnotherLengthIsRefusedWithItsLine) {
  expect_refused("a,b\n1,2\n3\n", "f.csv:3: the row has 1 fields; allowed: 2, as many as the header");
  expect_refused("a,b\n1,2,3\n", "f.csv:2: the row has 3 fields");
}

TEST(CsvReader, BadQuotesAreRefused) {
  expect_refused("a,b\n\"1,2\n3,4\n", "f.csv:2: a quote is not closed on its line");
  expect_refused("a,b\n1,2\"3\n", "f.csv:2: a quote inside '2\"3'");
  expect_refused("a,b\n\"1\"x,2\n", "f.csv:2: text after a closing quote");
}

TEST(CsvReader, ControlCharactersAreRefused) {
  expect_refused(std::string("a,b\n1\0,2\n", 9), "f.csv:2: the line has a control character");
  expect_refused("a,b\n1,\x1b[31m2\n", "f.csv:2: the line has a control character");
}

TEST(CsvReader, HeaderIsCheckedByName) {
  expect_refused("", "f.csv: the file is empty; allowed: a header line a,b,c,d");
  expect_refused("\n\r\n", "f.csv: the file is empty");
  expect_refused("a\n1\n", "f.csv:1: the column b is missing; allowed: a,b or a,b,c,d");
  expect_refused("a,b,x\n1,2,3\n", "f.csv:1: unknown column 'x'; allowed: a,b,c,d");
  expect_refused("a,b,a\n1,2,3\n", "f.csv:1: column 'a' is there twice");
  // The optional columns come together: a misspelt one must not pass as left out.
  expect_refused("a,b,c\n1,2,3\n", "f.csv:1: the column d is missing");
}

TEST(CsvReader, ReadErrorIsNotTheEndOfTheFile) {
  std::istringstream in("a,b\n1,2\n");
  CsvReader csv(in, "f.csv");
  ASSERT_TRUE(csv.read_header(kColumns, 2).ok());
  in.setstate(std::ios::badbit);
  EXPECT_FALSE(csv.next().ok());
}

class CsvNumber : public testing::Test {
 protected:
  Result<std::int64_t> number(const std::string& field) {
    std::istringstream in("a,b\n" + field + ",x\n");
    CsvReader csv(in, "f.csv");
    if (!csv.read_header(kColumns, 2).ok() || !csv.next().ok()) return Error{"no row"};
    return csv.number(0, 0, 128);
  }
};

TEST_F(CsvNumber, WholeNumbersInRangeAreTaken) {
  EXPECT_EQ(*number("0"), 0);
  EXPECT_EQ(*number("128"), 128);
  EXPECT_EQ(*number("007"), 7);
}

TEST_F(CsvNumber, AnythingElseIsRefusedAndSaysWhatIsAllowed) {
  for (const char* bad : {"", "-1", "129", "1.5", "1e2", "+1", " 1", "1 ", "0x10", "nan", "99999999999999999999"}) {
    const auto value = number(bad);
    ASSERT_FALSE(value.ok()) << bad;
    EXPECT_EQ(value.message(), "f.csv:2: a is '" + std::string(bad) + "'; allowed: a whole number from 0 to 128");
  }
}

TEST(CsvField, IsQuotedOnlyWhereNeeded) {
  EXPECT_EQ(csv_field("V100M16|V100M32"), "V100M16|V100M32");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a\"b"), "\"a\"\"b\"");
}

TEST(CsvReader, LongFieldsAreCutInMessages) {
  const auto rows = rows_of(std::string(5000, 'x') + "\n");
  ASSERT_FALSE(rows.ok());
  EXPECT_LT(rows.message().size(), 200U);
  EXPECT_THAT(rows.message(), HasSubstr("x...'"));
}

}  // namespace
}  // namespace mortise::traces
