#include "sim/option_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mortise::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Seeds, AreARangeAListOrAMix) {
  EXPECT_THAT(*parse_seeds("42"), ElementsAre(42U));
  EXPECT_THAT(*parse_seeds("42..45"), ElementsAre(42U, 43U, 44U, 45U));
  EXPECT_THAT(*parse_seeds("45,42"), ElementsAre(45U, 42U));
  EXPECT_THAT(*parse_seeds("1..2,7"), ElementsAre(1U, 2U, 7U));
  EXPECT_THAT(*parse_seeds("18446744073709551615..18446744073709551615"), ElementsAre(18446744073709551615U));
}

TEST(Seeds, OtherTextsAreRefusedWithTheAllowedForms) {
  for (const char* text :
       {"", "42..", "..42", "42...45", "a", "-1", "42,", "4 2", "0x2", "1.5", "18446744073709551616"}) {
    const auto seeds = parse_seeds(text);
    ASSERT_FALSE(seeds) << text;
    EXPECT_THAT(seeds.message(), HasSubstr("allowed: a number, a list 42,45 or a range 42..51"));
  }
}

TEST(Seeds, BackwardRangesRepetitionsAndEndlessRangesAreRefused) {
  EXPECT_THAT(parse_seeds("51..42").message(), HasSubstr("'51..42' runs backwards"));
  EXPECT_THAT(parse_seeds("42..44,43").message(), HasSubstr("seed 43 is named twice"));
  EXPECT_THAT(parse_seeds("0..18446744073709551615").message(), HasSubstr("more than 100000 seeds"));
  EXPECT_THAT(parse_seeds("0..99999,200000").message(), HasSubstr("more than 100000 seeds"));
}

TEST(Shards, AreCountedFromOne) {
  const auto shard = parse_shard("2/3");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->index, 2U);
  EXPECT_EQ(shard->count, 3U);
  for (const char* text : {"0/3", "4/3", "1", "1/", "/2", "a/b", "1/2/3", "-1/2"}) {
    const auto bad = parse_shard(text);
    ASSERT_FALSE(bad) << text;
    EXPECT_THAT(bad.message(), HasSubstr("allowed: i/n with 1 <= i <= n"));
  }
}

TEST(Names, AreSplitAtCommas) {
  EXPECT_THAT(*parse_names("fgd,best-fit", "--policies"), ElementsAre("fgd", "best-fit"));
  EXPECT_THAT(parse_names("fgd,,best-fit", "--policies").message(), HasSubstr("empty name"));
  EXPECT_THAT(parse_names("", "--policies").message(), HasSubstr("empty name"));
  EXPECT_THAT(parse_names("fgd,fgd", "--policies").message(), HasSubstr("'fgd' is named twice"));
}

TEST(Counts, WhatIsNoCountIsRefusedWithTheRange) {
  EXPECT_EQ(*parse_count("1", "--threads", 1024), 1U);
  EXPECT_EQ(*parse_count("1024", "--threads", 1024), 1024U);
  for (const char* text : {"", "-1", "0", "1025", "1.5", "x", "99999999999999999999"}) {
    const auto count = parse_count(text, "--threads", 1024);
    ASSERT_FALSE(count) << text;
    EXPECT_EQ(count.message(),
              "--threads '" + std::string(text) + "' is out of range; allowed: a whole number from 1 to 1024");
  }
}

TEST(Numbers, AreWholeAndWithoutSign) {
  EXPECT_EQ(*parse_number("0", "--seed"), 0U);
  for (const char* text : {"", "-1", "+1", "1e3", "4x", " 4"}) {
    const auto number = parse_number(text, "--seed");
    ASSERT_FALSE(number) << text;
    EXPECT_THAT(number.message(), HasSubstr("--seed"));
  }
}

TEST(PositiveNumbers, AreAboveZeroAndBounded) {
  EXPECT_DOUBLE_EQ(*parse_positive("0.85", "--load", 1000), 0.85);
  for (const char* text : {"", "0", "-1", "nan", "inf", "1001", "1,5", "0.5x"}) {
    const auto number = parse_positive(text, "--load", 1000);
    ASSERT_FALSE(number) << text;
    EXPECT_THAT(number.message(), HasSubstr("allowed: a number above 0, at most 1000"));
  }
}

}  // namespace
}  // namespace mortise::sim
