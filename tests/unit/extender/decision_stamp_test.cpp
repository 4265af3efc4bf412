// What a decision is stamped with, so that it can be repeated in its place among the others.
#include <gtest/gtest.h>

#include "scheduler/extender/handlers.h"
#include "tests/unit/extender/test_cluster.h"

namespace mortise::extender {
namespace {

constexpr Nanoseconds kHeld = 60 * kSecond;
const std::vector<std::string_view> kBig = {"big-a", "big-b"};

class DecisionStamps : public testing::Test {
 protected:
  DecisionStamps()
      : handlers_(cluster_.engine(), cluster_.bookings(), cluster_.clock(), kHeld, {}, [this] {
          return kube::DecisionStamp{++orders_, "n" + std::to_string(version_), "p"};
        }) {}

  kube::DecisionStamp bound(const std::string& uid, const std::string& node) {
    const Handlers::BindStart start = handlers_.start_bind({"pod-" + uid, "default", uid, node});
    EXPECT_EQ(start.error, "");
    return start.decided;
  }

  std::uint64_t orders_ = 0;
  int version_ = 1;
  TestCluster cluster_;
  Handlers handlers_;
};

TEST_F(DecisionStamps, TheFirstAnswerCountsWhenThePodIsGivenTheSameNodeAgain) {
  (void)handlers_.filter(ask("u1", 2, kBig));
  (void)handlers_.filter(ask("u2", 2, kBig));
  version_ = 2;
  (void)handlers_.filter(ask("u1", 2, kBig));
  EXPECT_EQ(bound("u1", "big-a").text(), R"({"order":1,"nodes":"n1","pods":"p"})");
  EXPECT_EQ(bound("u2", "big-a").order, 2U);
}

TEST_F(DecisionStamps, APlaceThatIsFoundAnewAtBindIsADecisionOfThatMoment) {
  (void)handlers_.filter(ask("u1", 8, kBig));
  cluster_.clock().advance(kHeld);
  (void)handlers_.filter(ask("u2", 2, kBig));  // takes two of the GPUs that were held until now
  EXPECT_EQ(bound("u2", "big-a").order, 2U);
  version_ = 3;
  EXPECT_EQ(bound("u1", "big-b"), (kube::DecisionStamp{3, "n3", "p"}));
}

}  // namespace
}  // namespace mortise::extender
