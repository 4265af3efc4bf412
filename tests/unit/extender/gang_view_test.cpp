// What people hear of gangs: GET /v1/gangs and /v1/explain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scheduler/extender/cluster_view.h"
#include "tests/unit/extender/gang_feed_fixture.h"

namespace mortise::extender {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class GangViewTest : public GangFeedTest {
 protected:
  json explain(const std::string& pod) { return json::parse(view_.explain("default", pod).body); }
  /// The one gang there is.
  json gang() { return json::parse(view_.gangs().body)["gangs"].at(0); }

  ClusterView::Parts parts() {
    ClusterView::Parts parts = test_.view_parts();
    parts.gangs = &gangs_;
    parts.bookings = &test_.bookings();
    parts.clock = &test_.clock();
    return parts;
  }
  ClusterView view_{parts()};
};

// Both hold a whole node. Without its own places there would be none with 8 free GPUs.
TEST_F(GangViewTest, AMemberThatHoldsAPlaceIsExplainedByThatPlace) {
  const kube::Pod first = member("g", 0, 8, 2);
  (void)filter(first);
  (void)filter(member("g", 1, 8, 2));
  EXPECT_EQ(explain("g-0"), json::parse(R"({"namespace":"default","pod":"g-0","gang":"default/g",
    "gang_state":"reserved","fits":true,"planned_node":"big-a","main_reason":null,"detail":null})"));
  EXPECT_EQ(explain("g-1")["planned_node"], "big-b");
}

TEST_F(GangViewTest, AMemberThatWaitsIsExplainedInTheWordsOfItsGang) {
  (void)filter(member("g", 0, 8, 3));
  EXPECT_EQ(explain("g-0")["main_reason"], "GangIncomplete");
  EXPECT_EQ(explain("g-0")["detail"], "1 of 3 members are there; it starts when all of these are");
  for (int i = 1; i < 3; ++i) (void)filter(member("g", i, 8, 3));
  const json refused = explain("g-0");
  EXPECT_EQ(refused["fits"], false);
  EXPECT_EQ(refused["gang_state"], gang()["state"]);
  EXPECT_EQ(refused["detail"], gang()["reason"]);
  // Two nodes have 8 GPUs; no cluster without a third takes three members.
  EXPECT_EQ(refused["main_reason"], "GangNeverFits");
  EXPECT_EQ(refused["planned_node"], nullptr);
}

// Named twice and asked about a third time: kube-scheduler does not take that node for this kind of member.
TEST_F(GangViewTest, ANodeThatIsSetAsideIsNamedInTheRefusal) {
  const kube::Pod first = member("g", 0, 8, 2);
  const kube::Pod second = member("g", 1, 8, 2);
  (void)filter(first);
  for (int i = 0; i < 3; ++i) (void)filter(second);
  EXPECT_EQ(gang()["state"], "blocked");
  EXPECT_THAT(std::string(gang()["reason"]),
              HasSubstr("; set aside, as kube-scheduler did not take them: big-b for 60 s more"));
  test_.clock().advance(13 * kSecond);
  EXPECT_THAT(std::string(gang()["reason"]), HasSubstr("big-b for 47 s more"));
  test_.clock().advance(48 * kSecond);
  EXPECT_THAT(std::string(gang()["reason"]), testing::Not(HasSubstr("big-b")));
}

TEST_F(GangViewTest, PlacesThatNobodyCameForEndByTimeAlone) {
  (void)filter(member("g", 0, 8, 2));
  (void)filter(member("g", 1, 8, 2));
  EXPECT_EQ(gang()["reserved"], 2);
  test_.clock().advance(59 * kSecond);
  test_.service().tick();
  EXPECT_EQ(gang()["reserved"], 2);
  test_.clock().advance(1 * kSecond);
  test_.service().tick();
  EXPECT_EQ(gang()["reserved"], 0);
  EXPECT_EQ(gangs_.figures().expired, 1U);
  EXPECT_EQ(test_.bookings().reserved(), 0U);
}

TEST_F(GangViewTest, ThePageShowsWhatGangsWaitForAndNamesOnlyToWhoMayHearThem) {
  (void)filter(member("<g>", 0, 8, 3));
  const std::string page = view_.page(true).body;
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">incomplete</th><td>1</td>"));
  EXPECT_THAT(page,
              HasSubstr("default/&lt;g&gt;: incomplete<br><span class=\"note\">0 bound, 0 hold a place, 1 wait, 3 "
                        "needed; 1 of 3 members are there"));
  EXPECT_THAT(page, HasSubstr("<a href=\"/v1/gangs\">"));
  const std::string without = view_.page(false).body;
  EXPECT_THAT(without, HasSubstr("<th scope=\"row\">incomplete</th><td>1</td>"));
  EXPECT_THAT(without, testing::Not(HasSubstr("&lt;g&gt;")));
}

// A single pod that holds a place for itself, as on a live cluster.
TEST(ExplainedPod, ItsOwnReservationIsNotSomebodyElses) {
  TestCluster test("first-fit", 120 * kSecond);
  test.occupy("big-b", 8);
  (void)test.handlers().filter(ask("a", 8, {"big-a", "big-b"}));
  ClusterView view(test.view_parts());
  const json found = json::parse(view.explain("default", "pod-a").body);
  EXPECT_EQ(found["planned_node"], "big-a");
  EXPECT_EQ(found["nodes_that_fit"], 1);
}

}  // namespace
}  // namespace mortise::extender
