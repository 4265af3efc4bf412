#include "scheduler/base/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace mortise {
namespace {

struct Case {
  const char* text;
  std::int64_t milli;  // worked out by hand from the grammar
};

// gtest prints parameters; without this it would print bytes.
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.text;
}

class AcceptedQuantity : public testing::TestWithParam<Case> {};

TEST_P(AcceptedQuantity, HasItsExactValue) {
  const Result<Quantity> parsed = Quantity::parse(GetParam().text);
  ASSERT_TRUE(parsed.ok()) << parsed.message();
  EXPECT_EQ(parsed->milli_rounded_up(), GetParam().milli);
}

INSTANTIATE_TEST_SUITE_P(
    Spellings, AcceptedQuantity,
    testing::Values(Case{"0", 0}, Case{"1", 1000}, Case{"+1", 1000}, Case{"-1", -1000}, Case{"007", 7000},
                    Case{"1k", 1'000'000}, Case{"1e3", 1'000'000}, Case{"1E3", 1'000'000}, Case{"1e+3", 1'000'000},
                    Case{"1e-3", 1}, Case{"5E-1", 500}, Case{"1000m", 1000}, Case{"2.0", 2000}, Case{".5", 500},
                    Case{"5.", 5000}, Case{"5.k", 5'000'000}, Case{"0.000", 0}, Case{"-0", 0}, Case{"1Ki", 1'024'000},
                    Case{"0.5Gi", 536'870'912'000}, Case{"1.5Ki", 1'536'000}, Case{"0.1Ki", 102'400},
                    Case{"1M", 1'000'000'000}, Case{"1G", 1'000'000'000'000}, Case{"1T", 1'000'000'000'000'000},
                    Case{"1P", 1'000'000'000'000'000'000}, Case{"1Mi", 1'048'576'000}, Case{"191450m", 191'450},
                    Case{"0.0025E3", 2500}, Case{"0e0", 0}, Case{"0E5", 0}, Case{"0e999999999", 0}, Case{"0Ei", 0},
                    Case{"1n", 1}, Case{"1u", 1}, Case{"1.0001m", 2}, Case{"-1.0001m", -2}, Case{"1e-1000", 1},
                    Case{"-1e-1000", -1}));

TEST(Quantity, ExaAndExponentAndBinaryExaAreToldApart) {
  EXPECT_EQ(Quantity::parse("1E")->rounded_up(), 1'000'000'000'000'000'000);
  EXPECT_EQ(Quantity::parse("1E2")->rounded_up(), 100);
  EXPECT_EQ(Quantity::parse("1Ei")->rounded_up(), std::int64_t{1} << 60);
}

TEST(Quantity, WholeRefusesFractionsAndRoundedUpRoundsAwayFromZero) {
  EXPECT_EQ(*Quantity::parse("2000m")->whole(), 2);
  EXPECT_FALSE(Quantity::parse("500m")->whole().ok());
  EXPECT_FALSE(Quantity::parse("1n")->whole().ok());
  EXPECT_EQ(Quantity::parse("1n")->rounded_up(), 1);
  EXPECT_EQ(Quantity::parse("1.5")->rounded_up(), 2);
  EXPECT_EQ(Quantity::parse("-1.5")->rounded_up(), -2);
}

TEST(Quantity, DigitsFinerThanABillionthRoundAwayFromZero) {
  // 1 + 10^-10 is held as 1.000000001.
  EXPECT_FALSE(Quantity::parse("1.0000000001")->whole().ok());
  EXPECT_EQ(Quantity::parse("1.0000000001")->milli_rounded_up(), 1001);
  // 0.0000000001 Ki is 0.0000001024, a fraction above zero.
  EXPECT_EQ(Quantity::parse("0.0000000001Ki")->rounded_up(), 1);
}

TEST(Quantity, LargestIsTheLargest64BitNumber) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(*Quantity::parse("9223372036854775807")->whole(), kMax);
  EXPECT_EQ(*Quantity::parse("-9223372036854775807")->whole(), -kMax);
  EXPECT_EQ(*Quantity::parse("9223372036854775807000m")->whole(), kMax);
  EXPECT_EQ(Quantity::parse("7.9999999999999999991Ei")->rounded_up(), kMax);  // 2^63 - 1.04, rounded up
  EXPECT_EQ(Quantity::parse("9223372036854775807")->milli_rounded_up(), kMax) << "saturates";
}

TEST(Quantity, FromWholeKeepsTheNumber) {
  EXPECT_EQ(*Quantity::from_whole(7).whole(), 7);
  EXPECT_TRUE(Quantity::from_whole(-7).negative());
  EXPECT_FALSE(Quantity::from_whole(0).negative());
  EXPECT_FALSE(Quantity::parse("-0")->negative());
}

class RefusedQuantity : public testing::TestWithParam<const char*> {};

TEST_P(RefusedQuantity, IsAnErrorThatShowsTheText) {
  const Result<Quantity> parsed = Quantity::parse(GetParam());
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.message().find('"' + std::string(GetParam()) + '"'), std::string::npos) << parsed.message();
}

INSTANTIATE_TEST_SUITE_P(Spellings, RefusedQuantity,
                         testing::Values("", "abc", "-", "+", ".", "k", "Ki", "1kk", "1 Gi", " 1", "1 ", "1e", "1E+",
                                         "1e-", "1e+-3", "1e--3", "1e1.5", "1e3k", "1.2.3", "1KI", "1K", "1ki", "1mi",
                                         "1i", "--1", "+-1", "0x10", "1_000", "1,5", "1e99999999999", "8Ei", "10E",
                                         "9223372036854775808", "9223372036854775807.5", "-9223372036854775808", "1e19",
                                         "1e2147483647", "0.001e22"));

TEST(Quantity, ErrorTextIsOneSafeLine) {
  const std::string message = Quantity::parse("1\n%s\x01\xFF").message();
  EXPECT_EQ(message.find_first_of("\n%\x01\xFF"), std::string::npos) << message;
  EXPECT_LT(Quantity::parse(std::string(1'000'000, 'x')).message().size(), 300U);
}

}  // namespace
}  // namespace mortise
