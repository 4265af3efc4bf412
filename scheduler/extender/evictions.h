#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/bookings.h"

namespace mortise::extender {

/// A pod that is to be evicted.
struct EvictionOrder {
  std::string ns;
  std::string name;
  std::string uid;
  std::string preemptor;     ///< for whom, NAMESPACE/NAME
  Nanoseconds given_up = 0;  ///< when it is not tried any more
};

/// What kube-scheduler does not evict of gangs that go as a whole: it evicts on one node only for each pod that
/// preempts. Nothing is done before it has begun with the gang. Not synchronised.
class Evictions {
 public:
  static constexpr Nanoseconds kWait = 60 * kSecond;     ///< for kube-scheduler to begin
  static constexpr Nanoseconds kLeave = 5 * kSecond;     ///< to kube-scheduler, what it may still evict itself
  static constexpr Nanoseconds kGiveUp = 600 * kSecond;  ///< where a budget does not allow it

  /// Both must outlive it.
  Evictions(const Bookings& bookings, const Clock& clock) : bookings_(bookings), clock_(clock) {}

  /// Once kube-scheduler has chosen one of `first` to go, all of these go: `rest` at once, `first` after a while.
  /// Replaces what was expected under the same key.
  void expect(const std::string& key, const std::string& preemptor, const std::vector<std::string>& first,
              const std::vector<std::string>& rest);
  /// kube-scheduler has chosen the pod to go.
  void begun(std::string_view uid);
  /// Somebody else decides from now on.
  void clear();
  /// Who is to be evicted now.
  std::optional<EvictionOrder> next();
  /// It was not allowed now.
  void try_later(const EvictionOrder& order, Nanoseconds wait);

 private:
  struct Expected {
    std::set<std::string, std::less<>> first;
    std::vector<EvictionOrder> later;
    std::vector<EvictionOrder> now;
    Nanoseconds until = 0;
  };
  std::optional<EvictionOrder> order_for(const std::string& uid, const std::string& preemptor) const;
  void forget(const std::string& key);
  void drop_old();

  const Bookings& bookings_;
  const Clock& clock_;
  std::map<std::string, Expected> expected_;
  std::map<std::string, std::set<std::string>, std::less<>> keys_of_;  // of expected_, by UID of `first`
  std::deque<std::pair<Nanoseconds, std::string>> ends_;               // of expected_, by key
  std::multimap<Nanoseconds, EvictionOrder> due_;
};

}  // namespace mortise::extender
