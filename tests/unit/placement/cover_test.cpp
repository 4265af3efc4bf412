// Spreading a gang over parts, against every choice of parts.
#include "scheduler/placement/cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "scheduler/base/rng.h"

namespace mortise::placement {
namespace {

Mix mix(std::initializer_list<int> counts) {
  Mix made;
  std::size_t k = 0;
  for (const int count : counts) made.of[k++] = static_cast<std::uint16_t>(count);
  return made;
}

/// Nothing beyond the parts' rooms, the target in sum.
void expect_valid(const std::vector<Mixes>& rooms, const Mix& target, const Cover& found) {
  Mix sum;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    EXPECT_TRUE(
        std::any_of(rooms[i].begin(), rooms[i].end(), [&](const Mix& room) { return room.covers(found.takes[i]); }));
    for (std::size_t k = 0; k < kMaxKinds; ++k)
      sum.of[k] = static_cast<std::uint16_t>(sum.of[k] + found.takes[i].of[k]);
  }
  EXPECT_EQ(sum, target);
}

std::vector<Part> parts_of(const std::vector<Mixes>& rooms) {
  std::vector<Part> parts;
  for (const Mixes& room : rooms) parts.push_back({&room, 0, false});
  return parts;
}

Mixes any_room(Rng& rng, std::size_t kinds, std::uint64_t most) {
  Mixes room;
  for (std::uint64_t i = 0; i <= rng.below(3); ++i) {
    Mix one;
    for (std::size_t k = 0; k < kinds; ++k) one.of[k] = static_cast<std::uint16_t>(rng.below(most + 1));
    room.push_back(one);
  }
  return room;
}

/// The fewest parts whose rooms together hold the target; 0: none do.
int fewest(const std::vector<Mixes>& rooms, const Mix& target) {
  int best = 0;
  MixSums sums(target);
  for (std::uint32_t chosen = 1; chosen < 1U << rooms.size(); ++chosen) {
    Mixes together = {Mix{}};
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      if ((chosen >> i & 1) != 0) together = sums.sum(together, rooms[i]);
    }
    const int used = std::popcount(chosen);
    if (together.front() == target && (best == 0 || used < best)) best = used;
  }
  return best;
}

TEST(Cover, UsesTheFewestPartsOfAllChoices) {
  const std::vector<std::int64_t> weights = {8, 4, 1};
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::size_t kinds = 1 + rng.below(3);
    std::vector<Mixes> rooms;
    for (std::uint64_t i = 0; i <= rng.below(7); ++i) rooms.push_back(any_room(rng, kinds, 3));
    Mix target;
    for (std::size_t k = 0; k < kinds; ++k) target.of[k] = static_cast<std::uint16_t>(1 + rng.below(5));
    SearchBudget budget;
    const auto found = cover(parts_of(rooms), target, std::span(weights).first(kinds), budget);
    const int best = fewest(rooms, target);
    ASSERT_EQ(found.has_value(), best > 0);
    if (!found) continue;
    expect_valid(rooms, target, *found);
    ASSERT_EQ(found->used, best);
  }
}

// Too many mixes to look at all: two parts are needed for the first kind, and 10 x 30 + 10 x 30 are enough for both.
TEST(Cover, LargeOnesTakeTheRoomiestPartsFirst) {
  std::vector<Mixes> rooms(200, Mixes{mix({10, 30})});
  rooms[150] = {mix({200, 400})};
  rooms[50] = {mix({190, 450})};
  rooms[70] = {mix({12, 45})};
  rooms[60] = {mix({11, 30})};
  SearchBudget budget;
  const Mix target = mix({401, 870});
  const auto found = cover(parts_of(rooms), target, std::vector<std::int64_t>{8, 1}, budget);
  ASSERT_TRUE(found.has_value());
  expect_valid(rooms, target, *found);
  EXPECT_EQ(found->used, 3) << "200 + 190 of 401, and 11 more";
  EXPECT_FALSE(found->takes[60].empty()) << "11 and 20 are left, and this one is the smallest that has them";
}

TEST(Cover, LargeOnesAreWithinThePartsWhateverComes) {
  int covered = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<Mixes> rooms;
    for (int i = 0; i < 60; ++i) rooms.push_back(any_room(rng, 3, 8));
    Mix target;
    for (std::size_t k = 0; k < 3; ++k) target.of[k] = static_cast<std::uint16_t>(60 + rng.below(120));
    SearchBudget budget;
    const auto found = cover(parts_of(rooms), target, std::vector<std::int64_t>{8, 4, 1}, budget);
    if (!found) continue;
    ++covered;
    expect_valid(rooms, target, *found);
  }
  EXPECT_GT(covered, 100);
}

TEST(Cover, WithoutStepsTheRoomiestPartsAreTaken) {
  const std::vector<Mixes> rooms = {{mix({1, 1})}, {mix({3, 2})}, {mix({1, 0})}};
  SearchBudget budget{0};
  const auto found = cover(parts_of(rooms), mix({4, 2}), std::vector<std::int64_t>{8, 1}, budget);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->takes[1], mix({3, 2}));
  EXPECT_EQ(found->takes[2], mix({1, 0})) << "the smallest that is enough";
}

TEST(Cover, PartsInUseComeFirstAndAreNotCounted) {
  const std::vector<Mixes> rooms = {{mix({5})}, {mix({2})}, {mix({4})}};
  std::vector<Part> parts = parts_of(rooms);
  parts[1].in_use = true;
  SearchBudget budget;
  const auto found = cover(parts, mix({6}), std::vector<std::int64_t>{1}, budget);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->takes[1], mix({2}));
  EXPECT_EQ(found->takes[2], mix({4})) << "enough for the rest, and smaller";
  EXPECT_EQ(found->used, 1);
}

TEST(Mixes, ManyAlikeAreTheSumOfAll) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const Mix cap = mix({9, 7});
    MixSums sums(cap);
    Mixes room = any_room(rng, 2, 2);
    sums.keep_largest(room);
    const std::size_t count = 1 + rng.below(6);
    Mixes expected = {Mix{}};
    for (std::size_t i = 0; i < count; ++i) expected = sums.sum(expected, room);
    ASSERT_EQ(sums.times(room, count), expected);
    ASSERT_TRUE(sums.exact());
  }
}

// a + b = 100 in a hundred ways, of which 16 are kept: all of them possible, and the search says that it left some out.
TEST(Mixes, WhatIsLeftOutIsSaid) {
  const Mix cap = mix({100, 100});
  MixSums sums(cap);
  const Mixes many = sums.times({mix({1, 0}), mix({0, 1})}, 100);
  EXPECT_EQ(many.size(), 16U);
  for (const Mix& one : many) EXPECT_EQ(one.total(), 100);
  EXPECT_FALSE(sums.exact());
}

}  // namespace
}  // namespace mortise::placement
