// Two replicas and one lease: at no moment do both lead, whatever the store and the network do.
#include "scheduler/extender/leadership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>

#include "tests/support/for_all.h"

namespace mortise::extender {
namespace {

using kube::Answer;
using kube::Lease;
using kube::Outcome;
using testing::HasSubstr;

/// A store that keeps one lease and refuses writes over a later state, as the API server does.
class FakeStore final : public LeaseStore {
 public:
  bool away = false;          ///< no request arrives
  bool answers_lost = false;  ///< requests arrive, their answers do not
  std::optional<Lease> lease;

  Answer<Lease> read() override { return answer(lease ? Outcome::kDone : Outcome::kNotFound); }
  Answer<Lease> create(const Lease& made) override {
    if (away) return answer(Outcome::kNotSent);
    if (lease) return answer(Outcome::kConflict);
    write(made);
    return answer(Outcome::kDone);
  }
  Answer<Lease> update(const Lease& later) override {
    if (away) return answer(Outcome::kNotSent);
    if (!lease || later.resource_version != lease->resource_version) return answer(Outcome::kConflict);
    write(later);
    return answer(Outcome::kDone);
  }

 private:
  void write(const Lease& next) {
    lease = next;
    lease->resource_version = std::to_string(++version_);
  }
  Answer<Lease> answer(Outcome outcome) const {
    if (away) return {Outcome::kNotSent, "the API server is away"};
    if (answers_lost) return {Outcome::kUnknown, "no answer"};
    Answer<Lease> made{outcome, outcome == Outcome::kDone ? "" : "409 Conflict"};
    if (outcome == Outcome::kDone) made.value = lease;
    return made;
  }
  int version_ = 0;
};

class LeadershipTest : public testing::Test {
 protected:
  void step(Leadership& who) { who.step({}); }

  ManualClock clock;
  FakeStore store;
  Leadership a{store, "a", clock};
  Leadership b{store, "b", clock};
};

TEST_F(LeadershipTest, TheFirstLeadsAndTheSecondSaysWhoDoes) {
  EXPECT_THAT(a.why_not(), HasSubstr("not been read yet"));
  step(a);
  step(b);
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(a.why_not(), "");
  EXPECT_FALSE(b.leads());
  EXPECT_EQ(b.why_not(), "a leads");
}

TEST_F(LeadershipTest, WithoutNewsItStopsByItsOwnClockBeforeAnotherMayBegin) {
  step(a);
  step(b);
  clock.advance(Leadership::kLeadsFor - 1);
  EXPECT_TRUE(a.leads());
  clock.advance(1);
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(a.why_not(), "the lease was not renewed in time");
  step(b);
  EXPECT_FALSE(b.leads());  // ten of fifteen seconds
  clock.advance(5 * kSecond + 1);
  step(b);
  EXPECT_TRUE(b.leads());
  step(a);
  EXPECT_EQ(a.why_not(), "b leads");
  EXPECT_EQ(store.lease->transitions, 1);
}

TEST_F(LeadershipTest, ANewReplicaWaitsOutALeaseThatItSeesForTheFirstTime) {
  step(a);
  clock.advance(60 * kSecond);
  step(b);  // for all b knows it was renewed a moment ago
  EXPECT_FALSE(b.leads());
  clock.advance(15 * kSecond + 1);
  step(b);
  EXPECT_TRUE(b.leads());
}

TEST_F(LeadershipTest, RenewingKeepsIt) {
  for (int i = 0; i < 30; ++i) {
    step(a);
    step(b);
    clock.advance(Leadership::kEvery);
    EXPECT_TRUE(a.leads());
    EXPECT_FALSE(b.leads());
  }
  EXPECT_EQ(store.lease->transitions, 0);
}

TEST_F(LeadershipTest, WhoResignsIsFollowedAtOnce) {
  step(a);
  step(b);
  a.resign({});
  EXPECT_FALSE(a.leads());
  step(b);
  EXPECT_TRUE(b.leads());
}

TEST_F(LeadershipTest, ALostAnswerGivesNoLeadership) {
  store.answers_lost = true;
  step(a);
  EXPECT_FALSE(a.leads());
  store.answers_lost = false;
  step(a);
  EXPECT_TRUE(a.leads());
}

TEST(LeadershipProperty, NeverDoTwoLead) {
  test::for_all(3000, [] {
    ManualClock clock;
    FakeStore store;
    Leadership replicas[] = {{store, "a", clock}, {store, "b", clock}, {store, "c", clock}};
    const int events = *rc::gen::inRange(1, 80);
    for (int i = 0; i < events; ++i) {
      store.away = *rc::gen::inRange(0, 5) == 0;
      store.answers_lost = *rc::gen::inRange(0, 6) == 0;
      clock.advance(*rc::gen::inRange<std::int64_t>(0, 6000) * (kSecond / 1000));
      Leadership& one = replicas[*rc::gen::inRange(0, 3)];
      if (*rc::gen::inRange(0, 12) == 0) {
        one.resign({});
      } else {
        one.step({});
      }
      int leaders = 0;
      for (const Leadership& replica : replicas) leaders += replica.leads() ? 1 : 0;
      RC_ASSERT(leaders <= 1);
    }
  });
}

}  // namespace
}  // namespace mortise::extender
