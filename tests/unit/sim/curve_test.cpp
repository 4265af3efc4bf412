#include "sim/curve.h"

#include <gtest/gtest.h>

namespace mortise::sim {
namespace {

TEST(RoundPercent, RoundsHalvesToEven) {
  EXPECT_EQ(round_percent(0, 1000), 0);
  EXPECT_EQ(round_percent(4, 1000), 0);
  EXPECT_EQ(round_percent(5, 1000), 0);   // 0.5
  EXPECT_EQ(round_percent(6, 1000), 1);   // 0.6
  EXPECT_EQ(round_percent(15, 1000), 2);  // 1.5
  EXPECT_EQ(round_percent(25, 1000), 2);  // 2.5
  EXPECT_EQ(round_percent(26, 1000), 3);  // 2.6
  EXPECT_EQ(round_percent(8'075'600, 6'212'000), 130);
}

TEST(RoundHundredths, RoundsToTheNearest) {
  EXPECT_DOUBLE_EQ(round_hundredths(95.294), 95.29);
  EXPECT_DOUBLE_EQ(round_hundredths(95.296), 95.30);
  EXPECT_DOUBLE_EQ(round_hundredths(0.125), 0.12);  // a half that is exact in binary goes to the even neighbour
}

TEST(Curve, AveragesTheArrivalsOfEachPercent) {
  CurveBuilder builder(10'000);
  builder.add(0, 0, 1000);       // 0 %: nothing used, F is 10 % of capacity and of idle
  builder.add(40, 1000, 2000);   // 0.4 %, bin 0: 10 % used, F is 20 % of capacity, 22.2 % of idle
  builder.add(100, 2000, 4000);  // bin 1
  const auto rows = builder.rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].arrived_pct, 0);
  EXPECT_DOUBLE_EQ(*rows[0].allocation_pct, 5);
  EXPECT_DOUBLE_EQ(*rows[0].frag_pct_of_capacity, 15);
  // Not rounded: (10 + 100 * 2000 / 9000) / 2.
  EXPECT_DOUBLE_EQ(*rows[0].frag_pct_of_idle, (10 + 200.0 / 9) / 2);
  EXPECT_EQ(rows[1].arrived_pct, 1);
  EXPECT_DOUBLE_EQ(*rows[1].allocation_pct, 20);
  EXPECT_DOUBLE_EQ(*rows[1].frag_pct_of_idle, 50);
}

TEST(Curve, RoundsAllocationPerArrivalBeforeTheMean) {
  // 1/30000 of capacity is 0.0033 %, rounded 0.00; 5/30000 is 0.0167 %, rounded 0.02. The mean of 0.00 x 4 and 0.02 is
  // 0.004, rounded 0.00. Without the first rounding the mean would be 0.006, rounded 0.01.
  CurveBuilder builder(30'000);
  for (int i = 0; i < 4; ++i) builder.add(0, 1, 0);
  builder.add(0, 5, 0);
  EXPECT_DOUBLE_EQ(*builder.rows().at(0).allocation_pct, 0.0);
}

TEST(Curve, FillsAnEmptyPercentFromItsNeighbours) {
  CurveBuilder builder(100);
  builder.add(1, 10, 10);
  builder.add(3, 20, 30);
  builder.add(7, 40, 30);
  const auto rows = builder.rows();
  ASSERT_EQ(rows.size(), 8U);
  EXPECT_DOUBLE_EQ(*rows[0].allocation_pct, 10);  // only bin 1 beside it has data
  EXPECT_DOUBLE_EQ(*rows[2].allocation_pct, 15);  // bins 1 and 3
  EXPECT_DOUBLE_EQ(*rows[2].frag_pct_of_capacity, 20);
  EXPECT_DOUBLE_EQ(*rows[2].frag_pct_of_idle, (100.0 * 10 / 90 + 100.0 * 30 / 80) / 2);
  EXPECT_DOUBLE_EQ(*rows[4].allocation_pct, 20);  // only bin 3: a filled bin is no data for the next
  EXPECT_FALSE(rows[5].allocation_pct.has_value());
  EXPECT_FALSE(rows[5].frag_pct_of_idle.has_value());
  EXPECT_FALSE(rows[5].frag_pct_of_capacity.has_value());
  EXPECT_DOUBLE_EQ(*rows[6].allocation_pct, 40);
}

TEST(Curve, AFullClusterHasNoRatioOfIdle) {
  CurveBuilder builder(1000);
  builder.add(1000, 1000, 0);
  const CurveRow row = builder.rows().at(100);
  EXPECT_FALSE(row.frag_pct_of_idle.has_value());
  EXPECT_DOUBLE_EQ(*row.allocation_pct, 100);
  EXPECT_DOUBLE_EQ(*row.frag_pct_of_capacity, 0);
}

TEST(Curve, WithoutArrivalsHasNoRows) {
  EXPECT_TRUE(CurveBuilder(1000).rows().empty());
}

TEST(CurveAt, FollowsTheRuleForEmptyPercentsJustBeyondTheEnd) {
  CurveBuilder builder(100);
  builder.add(2, 50, 0);
  const auto rows = builder.rows();
  EXPECT_DOUBLE_EQ(*curve_at(rows, 2).allocation_pct, 50);
  EXPECT_DOUBLE_EQ(*curve_at(rows, 3).allocation_pct, 50);
  EXPECT_EQ(curve_at(rows, 3).arrived_pct, 3);
  EXPECT_FALSE(curve_at(rows, 4).allocation_pct.has_value());
  EXPECT_FALSE(curve_at({}, 0).allocation_pct.has_value());
}

}  // namespace
}  // namespace mortise::sim
