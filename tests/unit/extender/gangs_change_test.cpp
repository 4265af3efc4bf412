// What a gang asks for, or who is in it, changes while places are only reserved; and which gangs yield to another.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/extender/gangs_fixture.h"

namespace mortise::extender {
namespace {

TEST_F(GangsTest, ARackThatComesToBeRequiredWhilePlacesAreReservedIsNotBroken) {
  node("a", "r1");
  node("b", "r2");
  node("c", "r2");
  members(gang("g", 3), 0, 3, 8);
  EXPECT_TRUE(cluster_.find_node(where("g-0")));
  EXPECT_EQ(bookings_.reserved(), 3U);
  gangs_.respecify(gang("g", 3, "rack"));
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_FALSE(gangs_.start_bind("g-0", "a").empty());
  EXPECT_TRUE(where("g-0").starts_with("GangNeverFits"));
  node("d", "r2");
  gangs_.nodes_changed();
  std::set<std::string> nodes;
  for (const char* uid : {"g-0", "g-1", "g-2"}) nodes.insert(run(uid));
  EXPECT_EQ(nodes, (std::set<std::string>{"b", "c", "d"}));
}

TEST_F(GangsTest, PlacesThatDoForWhatComesToBeRequiredStay) {
  node("a", "r1");
  node("b", "r1");
  members(gang("g", 2), 0, 2, 8);
  const std::string first = where("g-0");
  gangs_.respecify(gang("g", 2, "rack"));
  EXPECT_EQ(bookings_.reserved(), 2U);
  EXPECT_EQ(run("g-0"), first);
}

TEST_F(GangsTest, WhoIsBoundStaysWhenARackComesToBeRequiredAndTheOthersFollow) {
  node("a", "r1");
  node("b", "r2");
  members(gang("g", 2), 0, 2, 8);
  const std::string bound = run("g-0");
  gangs_.respecify(gang("g", 2, "rack"));
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(where("g-1"), kNoRoom);
  node("c", bound == "a" ? "r1" : "r2");
  gangs_.nodes_changed();
  EXPECT_EQ(run("g-1"), "c");
  EXPECT_EQ(bookings_.find("g-0")->node, bound);
}

// Two of three members fit, and two are enough; then three are needed.
TEST_F(GangsTest, AMinimumThatGrowsWhilePlacesAreReservedGivesThemBack) {
  node("a", "r1", 4);
  members(gang("g", 2), 0, 3, 2);
  EXPECT_EQ(where("g-0"), "a");
  EXPECT_EQ(bookings_.reserved(), 2U);
  gangs_.respecify(gang("g", 3));
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_EQ(where("g-0"), kNoRoom);
}

TEST_F(GangsTest, ARoleThatComesToNeedMoreWhilePlacesAreReservedGivesThemBack) {
  node("a", "r1", 4);
  GangSpec spec = gang("g", 2);
  for (const char* uid : {"w-0", "w-1", "w-2"}) gangs_.see(spec, {request(uid, 2, 0), "worker", ""});
  EXPECT_EQ(where("w-0"), "a");
  spec.roles = {{"worker", 3}};
  gangs_.respecify(spec);
  EXPECT_EQ(bookings_.reserved(), 0U);
}

TEST_F(GangsTest, AMemberThatChangesGangTakesNoPlaceAlong) {
  node("a", "r1");
  node("b", "r1");
  members(gang("A", 2), 0, 2, 8);
  EXPECT_TRUE(cluster_.find_node(where("A-0")));
  const GangSpec other = gang("B", 2);
  gangs_.see(other, {request("A-0", 8, 0), "", ""});
  EXPECT_EQ(bookings_.reserved(), 0U);  // nor is A whole without it
  members(other, 2, 3, 8);
  EXPECT_TRUE(cluster_.find_node(where("A-0")));
  EXPECT_TRUE(cluster_.find_node(run("B-2")));
  EXPECT_TRUE(cluster_.find_node(run("A-0")));
}

// Whether it was bound is not known, so its place outlives those of the others; these are planned anew, for 60 s.
TEST_F(GangsTest, PlacesTakenBesideOneThatOutlivedTheOthersLastTheirTime) {
  node("a", "r1");
  node("b", "r1");
  members(gang("g", 2), 0, 2, 8);
  const std::string first = where("g-0");
  ASSERT_EQ(gangs_.start_bind("g-0", first), "");
  bookings_.start_binding("g-0");
  clock_.advance(61 * kSecond);
  gangs_.tick();
  bookings_.binding_unknown("g-0", clock_.now() + 60 * kSecond);
  const std::string second = where("g-1");
  EXPECT_TRUE(cluster_.find_node(second));
  clock_.advance(1 * kSecond);
  EXPECT_EQ(run("g-1"), second);
}

TEST_F(GangsTest, AMemberThatAsksForMoreThanItHasGivesUpItsPlace) {
  node("a", "r1");
  const GangSpec spec = gang("g", 2);
  members(spec, 0, 2, 1);
  EXPECT_EQ(where("g-0"), "a");
  members(spec, 0, 2, 8);
  EXPECT_EQ(bookings_.reserved(), 0U);
  EXPECT_FALSE(gangs_.start_bind("g-0", "a").empty());
}

// Each binding begins the 60 s anew for all that are reserved, so that the last of four may come after three minutes.
TEST_F(GangsTest, PlacesLastAsLongAsMembersComeInTime) {
  node("a", "r1");
  members(gang("g", 4), 0, 4, 2);
  for (const char* uid : {"g-0", "g-1", "g-2", "g-3"}) {
    EXPECT_EQ(run(uid), "a");
    clock_.advance(59 * kSecond);
    gangs_.tick();
  }
  EXPECT_EQ(phase("g"), GangPhase::kRunning);
}

/// Gangs of one member that fills its node, LOW-0 to LOW-(N-1), the last one came last.
class YieldTest : public GangsTest {
 protected:
  void fill(int gangs, int racks) {
    for (int i = 0; i < gangs; ++i) node("n" + std::to_string(i), "r" + std::to_string(i % racks));
    for (int i = 0; i < gangs; ++i) {
      const std::string key = "low" + std::to_string(i);
      members(gang(key, 1), 0, 1, 8, 1);
      const std::string node = where(key + "-0");
      ASSERT_TRUE(cluster_.find_node(node));
      rack_of_.push_back(std::stoi(node.substr(1)) % racks);
    }
  }
  std::set<int> yielded() const {
    std::set<int> gone;
    for (int i = 0; i < static_cast<int>(rack_of_.size()); ++i) {
      if (phase("low" + std::to_string(i)) != GangPhase::kReserved) gone.insert(i);
    }
    return gone;
  }

  std::vector<int> rack_of_;  // by gang
};

TEST_F(YieldTest, OfManyGangsTheOneThatCameLastYieldsToASmallOne) {
  fill(40, 1);
  members(gang("high", 1), 0, 1, 8, 2);
  EXPECT_TRUE(cluster_.find_node(where("high-0")));
  EXPECT_EQ(yielded(), std::set<int>{39});
}

// More than there are searches for.
TEST_F(YieldTest, OfManyGangsThoseThatCameLastYieldToALargeOne) {
  fill(60, 1);
  members(gang("high", 45), 0, 45, 8, 2);
  EXPECT_TRUE(cluster_.find_node(where("high-0")));
  std::set<int> last;
  for (int i = 15; i < 60; ++i) last.insert(i);
  EXPECT_EQ(yielded(), last);
}

// What is expected is found by leaving out one after the other, whoever came first is first, for as long as some rack
// has enough nodes.
TEST_F(YieldTest, WhoYieldsIsWhomTheRackNeedsAndTheLatestOfThose) {
  fill(18, 3);
  members(gang("high", 3, "rack"), 0, 3, 8, 2);
  std::vector<bool> out(18, true);
  const auto fits = [&] {
    std::vector<int> free(3);
    for (std::size_t i = 0; i < 18; ++i) free[static_cast<std::size_t>(rack_of_[i])] += out[i] ? 1 : 0;
    return *std::max_element(free.begin(), free.end()) >= 3;
  };
  for (std::size_t i = 0; i < 18; ++i) {
    out[i] = false;
    if (!fits()) out[i] = true;
  }
  std::set<int> expected;
  for (int i = 0; i < 18; ++i) {
    if (out[static_cast<std::size_t>(i)]) expected.insert(i);
  }
  EXPECT_TRUE(cluster_.find_node(where("high-0")));
  EXPECT_EQ(yielded(), expected);
}

}  // namespace
}  // namespace mortise::extender
