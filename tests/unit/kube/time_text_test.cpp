#include "scheduler/kube/objects/time_text.h"

#include <gtest/gtest.h>

namespace mortise::kube {
namespace {

// `date -u -d TIME +%s`
TEST(ParseTime, IsCountedFrom1970) {
  EXPECT_EQ(*parse_time("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(*parse_time("2025-01-31T23:59:59Z"), 1738367999 * kSecond);
  EXPECT_EQ(*parse_time("2024-02-29T12:00:00Z"), 1709208000 * kSecond);
  EXPECT_EQ(*parse_time("2024-02-29t12:00:00z"), 1709208000 * kSecond);
}

TEST(ParseTime, FractionsAndOffsets) {
  EXPECT_EQ(*parse_time("1970-01-01T00:00:01.5Z"), 1'500'000'000);
  EXPECT_EQ(*parse_time("1970-01-01T00:00:01.000000001Z"), 1'000'000'001);
  EXPECT_EQ(*parse_time("1970-01-01T00:00:01.0000000019Z"), 1'000'000'001);
  EXPECT_EQ(*parse_time("1970-01-01T02:00:00+02:00"), 0);
  EXPECT_FALSE(parse_time("1969-12-31T22:30:00-01:30").ok());  // the year as written is before 1970
  EXPECT_EQ(*parse_time("1970-01-01T00:00:00-01:30"), 5400 * kSecond);
}

TEST(ParseTime, WhatIsNoTimeIsRefused) {
  for (const char* text :
       {"", "now", "2025-01-31", "2025-01-31T23:59:59", "2025-01-31 23:59:59Z", "2025-02-30T00:00:00Z",
        "2025-13-01T00:00:00Z", "2025-00-01T00:00:00Z", "2025-01-00T00:00:00Z", "2025-01-31T24:00:00Z",
        "2025-01-31T23:60:00Z", "2025-01-31T23:59:61Z", "2025-01-31T23:59:59.Z", "2025-01-31T23:59:59ZZ",
        "2025-01-31T23:59:59+0200", "2025-01-31T23:59:59+24:00", "2300-01-01T00:00:00Z", "-025-01-31T23:59:59Z"}) {
    EXPECT_FALSE(parse_time(text).ok()) << text;
  }
  EXPECT_EQ(parse_time("soon").message(),
            "\"soon\" is no time; allowed: as in 2025-01-31T23:59:59Z, years 1970 to 2261");
}

}  // namespace
}  // namespace mortise::kube
