#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "scheduler/base/units.h"

namespace mortise::extender {

/// Lets so many in at once. Thread-safe.
class Gate {
 public:
  explicit Gate(std::size_t places) : free_(places) {}

  /// False when no place becomes free in time.
  bool enter(Nanoseconds patience);
  void leave();

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::size_t free_;
};

/// A place in the gate for as long as this lives, if there was one.
class Pass {
 public:
  Pass(Gate& gate, Nanoseconds patience) : gate_(gate), entered_(gate.enter(patience)) {}
  ~Pass() {
    if (entered_) gate_.leave();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  explicit operator bool() const { return entered_; }

 private:
  Gate& gate_;
  const bool entered_;
};

}  // namespace mortise::extender
