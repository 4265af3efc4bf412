#pragma once

#include <chrono>

#include "scheduler/base/units.h"

namespace mortise {

/// Where the time comes from. The core and the handlers never read a clock of the machine themselves.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic; the origin is arbitrary.
  virtual Nanoseconds now() const = 0;
  /// By the calendar; may jump when the machine's time is set. A clock without a calendar began in 1970.
  virtual Nanoseconds since_1970() const { return now(); }
};

class SteadyClock final : public Clock {
 public:
  Nanoseconds now() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  Nanoseconds since_1970() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

/// Time that moves only when told to: tests and the simulator.
class ManualClock final : public Clock {
 public:
  Nanoseconds now() const override { return now_; }
  void advance(Nanoseconds by) { now_ += by; }

 private:
  Nanoseconds now_ = 0;
};

}  // namespace mortise
