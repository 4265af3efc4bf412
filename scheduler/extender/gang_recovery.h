#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/gang_feed.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/extender/plan_store.h"

namespace mortise::extender {

/// Takes the places again that a former extender had reserved for members of gangs: once all is known that is bound,
/// and again each time that this replica begins to lead. No question is answered before.
class GangRecovery {
 public:
  /// How long plans are asked for that the API server does not give; then they count as lost.
  static constexpr Nanoseconds kPatience = 10 * kSecond;

  /// `mutex` guards the gangs and the feed; `why_not` tells why it is too early. All must outlive it.
  GangRecovery(Gangs& gangs, GangFeed& feed, std::mutex& mutex, PlanStore& store, const Clock& clock,
               std::function<std::string()> why_not)
      : gangs_(gangs), feed_(feed), mutex_(mutex), store_(store), clock_(clock), why_not_(std::move(why_not)) {}

  /// Does what is to be done now; takes as long as the store does. To be called often, by one thread.
  void step();
  bool done() const { return done_; }
  /// Whose slot was not believed since the last call. Takes the mutex.
  std::vector<RefusedSlot> take_refused();

 private:
  bool read(const std::set<PlanMapName>& names);

  Gangs& gangs_;
  GangFeed& feed_;
  std::mutex& mutex_;
  PlanStore& store_;
  const Clock& clock_;
  std::function<std::string()> why_not_;
  std::optional<Nanoseconds> since_;  // since when it is time
  Gangs::PlanTexts texts_;            // read so far
  std::vector<RefusedSlot> refused_;  // guarded by mutex_
  bool done_ = false;
};

}  // namespace mortise::extender
