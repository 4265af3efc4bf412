// Replicas and one lease: at no moment do two lead, whatever the store and the network do; and who is asked leads.
#include "scheduler/extender/leadership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "tests/support/for_all.h"

namespace mortise::extender {
namespace {

using kube::Answer;
using kube::Lease;
using kube::Outcome;
using testing::HasSubstr;

constexpr const char* kAskedBy = Leadership::kAskedByAnnotation;

/// A store that keeps one lease and refuses writes over a later state, as the API server does.
class FakeStore final : public LeaseStore {
 public:
  bool away = false;          ///< no request arrives
  bool answers_lost = false;  ///< requests arrive, their answers do not
  std::optional<Lease> lease;
  int writes = 0;
  std::function<void()> before_update;  ///< called once, between a read and the update

  Answer<Lease> read() override { return answer(lease ? Outcome::kDone : Outcome::kNotFound); }
  Answer<Lease> create(const Lease& made) override {
    if (away) return answer(Outcome::kNotSent);
    if (lease) return answer(Outcome::kConflict);
    write(made);
    return answer(Outcome::kDone);
  }
  Answer<Lease> update(const Lease& later) override {
    if (before_update) std::exchange(before_update, {})();
    if (away) return answer(Outcome::kNotSent);
    if (!lease || later.resource_version != lease->resource_version) return answer(Outcome::kConflict);
    write(later);
    return answer(Outcome::kDone);
  }

 private:
  void write(const Lease& next) {
    lease = next;
    lease->resource_version = std::to_string(++writes);
  }
  Answer<Lease> answer(Outcome outcome) const {
    if (away) return {Outcome::kNotSent, "the API server is away"};
    if (answers_lost) return {Outcome::kUnknown, "no answer"};
    Answer<Lease> made{outcome, outcome == Outcome::kDone ? "" : "409 Conflict"};
    if (outcome == Outcome::kDone) made.value = lease;
    return made;
  }
};

/// The wall clock runs like the other one.
std::chrono::system_clock::time_point wall(const Clock& clock) {
  return std::chrono::system_clock::time_point(std::chrono::microseconds(clock.now() / 1000));
}

class LeadershipTest : public testing::Test {
 protected:
  void step(Leadership& who) { who.step(wall(clock)); }
  std::string asked_by() const {
    const auto found = store.lease->annotations.find(kAskedBy);
    return found == store.lease->annotations.end() ? "nobody" : found->second;
  }

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
  a.resign(wall(clock));
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

TEST_F(LeadershipTest, TheReplicaThatIsAskedGetsTheLeaseOfOneThatIsNot) {
  step(a);
  step(b);
  b.asked();
  step(b);
  EXPECT_EQ(asked_by(), "b");
  EXPECT_TRUE(a.leads());  // until it hears of it
  step(a);
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(a.why_not(), "the lease is being left to b");
  EXPECT_EQ(store.lease->holder, "");
  step(b);
  EXPECT_TRUE(b.leads());
  EXPECT_EQ(store.lease->transitions, 1);
  EXPECT_EQ(asked_by(), "nobody");
  step(a);
  EXPECT_EQ(a.why_not(), "b leads");
}

TEST_F(LeadershipTest, AHolderThatIsAskedItselfKeepsTheLease) {
  for (int second = 0; second < 120; ++second) {
    a.asked();
    b.asked();
    if (second % 2 == 0) {
      step(a);
      step(b);
    }
    EXPECT_TRUE(a.leads()) << second;
    EXPECT_FALSE(b.leads()) << second;
    clock.advance(kSecond);
  }
  EXPECT_EQ(store.lease->transitions, 0);
}

TEST_F(LeadershipTest, FiveSecondsAfterItsLastQuestionAHolderGivesWay) {
  step(a);
  a.asked();
  clock.advance(Leadership::kAskedLately - 1);
  b.asked();
  step(b);
  step(a);
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(asked_by(), "nobody");  // read, and not followed
  clock.advance(1);
  b.asked();
  clock.advance(Leadership::kAskEvery - 1);
  b.asked();
  step(b);
  step(a);
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(store.lease->holder, "");
}

// 60 s, a step every second: asked for at most every 4 s, so 15 times; and the holder renews each time it steps.
TEST_F(LeadershipTest, ItAsksAtMostOnceInFourSeconds) {
  step(a);
  int asked = 0;
  for (int second = 0; second < 60; ++second) {
    a.asked();
    b.asked();
    const int before = store.writes;
    step(b);
    asked += store.writes - before;
    step(a);
    clock.advance(kSecond);
  }
  EXPECT_EQ(asked, 15);
}

TEST_F(LeadershipTest, WithoutAQuestionNobodyAsksForTheLease) {
  step(a);
  step(b);
  EXPECT_EQ(asked_by(), "nobody");
  b.asked();
  clock.advance(Leadership::kAskedLately);
  step(b);  // too long ago
  EXPECT_EQ(asked_by(), "nobody");
}

TEST_F(LeadershipTest, TheOthersLeaveTheLeaseToWhoAskedForItButNotForEver) {
  Leadership c{store, "c", clock};
  step(a);
  b.asked();
  step(b);
  step(a);  // gives it back; b dies now
  step(a);
  step(c);
  EXPECT_EQ(store.lease->holder, "");
  EXPECT_EQ(c.why_not(), "the lease is left to b");
  clock.advance(Leadership::kLeftToAsker);
  step(a);
  step(c);
  EXPECT_FALSE(a.leads() || c.leads());
  clock.advance(1);
  step(a);
  step(c);
  EXPECT_TRUE(a.leads());
  EXPECT_FALSE(c.leads());
  EXPECT_EQ(asked_by(), "nobody");
}

TEST_F(LeadershipTest, AskingForTheLeaseOfADeadHolderIsNotTakenForItsRenewal) {
  Leadership c{store, "c", clock};
  step(a);  // and dies
  step(b);
  for (int second = 0; second <= 15; ++second) {
    c.asked();
    step(c);
    step(b);
    EXPECT_FALSE(b.leads() || c.leads()) << second;
    clock.advance(kSecond);
  }
  step(b);
  EXPECT_TRUE(b.leads());
}

TEST_F(LeadershipTest, AnAnnotationThatNoReplicaWroteIsTakenAway) {
  step(a);
  for (const std::string& text : {std::string(), std::string("two words"), std::string("line\nfeed"),
                                  std::string("\xC3\xA4"), std::string(600, 'x'), std::string("a")}) {
    store.lease->annotations[kAskedBy] = text;
    step(a);
    EXPECT_TRUE(a.leads()) << text;
    EXPECT_EQ(asked_by(), "nobody") << text;
  }
  // Nor does it keep others from a free lease, or from asking.
  a.resign(wall(clock));
  store.lease->annotations[kAskedBy] = "two words";
  step(b);
  EXPECT_TRUE(b.leads());
  store.lease->annotations[kAskedBy] = "two words";
  a.asked();
  step(a);
  EXPECT_EQ(asked_by(), "a");
}

TEST_F(LeadershipTest, AnnotationsOfOthersStay) {
  step(a);
  store.lease->annotations["example.com/note"] = "x";
  b.asked();
  step(b);
  step(a);
  step(b);
  EXPECT_TRUE(b.leads());
  EXPECT_EQ(store.lease->annotations.at("example.com/note"), "x");
}

TEST_F(LeadershipTest, TheLeaseIsGivenBackWhenNoBindingIsOnItsWay) {
  bool busy = true;
  Leadership holder{store, "h", clock, [&] { return busy; }};
  step(holder);
  b.asked();
  step(b);
  step(holder);
  EXPECT_FALSE(holder.leads());  // sends no more
  EXPECT_EQ(store.lease->holder, "h");
  step(b);
  EXPECT_FALSE(b.leads());
  busy = false;
  step(holder);
  step(b);
  EXPECT_TRUE(b.leads());
}

TEST_F(LeadershipTest, ALeaseThatIsNotGivenBackRunsOut) {
  Leadership holder{store, "h", clock, [] { return true; }};
  step(holder);
  b.asked();
  step(b);
  for (int second = 0; second <= 15; ++second) {
    step(holder);
    step(b);
    EXPECT_FALSE(holder.leads() || b.leads()) << second;
    clock.advance(kSecond);
  }
  step(b);
  EXPECT_TRUE(b.leads());
}

TEST_F(LeadershipTest, WhoIsAboutToGiveItBackDoesSoAtItsEnd) {
  Leadership holder{store, "h", clock, [] { return true; }};
  step(holder);
  b.asked();
  step(b);
  step(holder);
  holder.resign(wall(clock));
  EXPECT_EQ(store.lease->holder, "");
}

TEST_F(LeadershipTest, AHandOverWhoseAnswerIsLostIsDoneAgainOrFound) {
  step(a);
  b.asked();
  step(b);
  store.before_update = [&] { store.answers_lost = true; };
  step(a);
  EXPECT_FALSE(a.leads());
  store.answers_lost = false;
  step(a);
  EXPECT_FALSE(a.leads());
  step(b);
  EXPECT_TRUE(b.leads());
}

TEST_F(LeadershipTest, AWriteThatComesInBetweenCostsNoRenewal) {
  step(a);
  clock.advance(9 * kSecond);
  store.before_update = [&] {
    b.asked();
    step(b);
  };
  a.asked();
  step(a);
  clock.advance(9 * kSecond);
  EXPECT_TRUE(a.leads());
}

/// One replica is asked all the time, the others at most for a while: it leads within 15 s after the last question to
/// another, the lease's time at worst, and stays.
TEST(LeadershipProperty, LeadershipFollowsTheQuestions) {
  test::for_all(500, [] {
    ManualClock clock;
    FakeStore store;
    Leadership replicas[] = {{store, "a", clock}, {store, "b", clock}, {store, "c", clock}};
    const auto run = [&](int asked, int seconds) {
      const int phase = *rc::gen::inRange(0, 2);
      for (int second = 0; second < seconds; ++second) {
        replicas[asked].asked();
        for (int i = 0; i < 3; ++i) {
          if ((second + i * phase) % 2 == 0) replicas[i].step(wall(clock));
        }
        clock.advance(kSecond);
      }
    };
    for (int turn = 0; turn < 5; ++turn) {
      const int asked = *rc::gen::inRange(0, 3);
      run(asked, 15);
      for (int i = 0; i < 3; ++i) RC_ASSERT(replicas[i].leads() == (i == asked));
      run(asked, *rc::gen::inRange(1, 30));
      for (int i = 0; i < 3; ++i) RC_ASSERT(replicas[i].leads() == (i == asked));
    }
  });
}

TEST(LeadershipProperty, NeverDoTwoLead) {
  test::for_all(3000, [] {
    ManualClock clock;
    FakeStore store;
    bool busy = false;
    const auto is_busy = [&] { return busy; };
    Leadership replicas[] = {{store, "a", clock, is_busy}, {store, "b", clock, is_busy}, {store, "c", clock, is_busy}};
    const int events = *rc::gen::inRange(1, 80);
    for (int i = 0; i < events; ++i) {
      store.away = *rc::gen::inRange(0, 5) == 0;
      store.answers_lost = *rc::gen::inRange(0, 6) == 0;
      clock.advance(*rc::gen::inRange<std::int64_t>(0, 6000) * (kSecond / 1000));
      Leadership& one = replicas[*rc::gen::inRange(0, 3)];
      if (*rc::gen::inRange(0, 3) == 0) one.asked();
      busy = *rc::gen::inRange(0, 4) == 0;
      if (store.lease && *rc::gen::inRange(0, 10) == 0)
        store.lease->annotations[kAskedBy] = *rc::gen::arbitrary<std::string>();
      if (*rc::gen::inRange(0, 12) == 0) {
        one.resign(wall(clock));
      } else {
        one.step(wall(clock));
      }
      int leaders = 0;
      for (const Leadership& replica : replicas) leaders += replica.leads() ? 1 : 0;
      RC_ASSERT(leaders <= 1);
    }
  });
}

}  // namespace
}  // namespace mortise::extender
