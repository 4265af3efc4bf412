#pragma once

#include <stop_token>

#include "scheduler/base/units.h"

namespace mortise::kube {

/// Lets time pass. Injected, so that tests pass it by hand.
class Waiter {
 public:
  virtual ~Waiter() = default;
  /// Returns after `time`, or as soon as stop is asked for.
  virtual void wait(Nanoseconds time, const std::stop_token& stop) = 0;
};

/// Sleeps. Safe for use by several threads at once.
class SleepingWaiter final : public Waiter {
 public:
  void wait(Nanoseconds time, const std::stop_token& stop) override;
};

}  // namespace mortise::kube
