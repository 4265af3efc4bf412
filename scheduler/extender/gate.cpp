#include "scheduler/extender/gate.h"

#include <chrono>

namespace mortise::extender {

bool Gate::enter(Nanoseconds patience) {
  std::unique_lock lock(mutex_);
  if (!left_.wait_for(lock, std::chrono::nanoseconds(patience), [this] { return free_ > 0; })) return false;
  --free_;
  return true;
}

void Gate::leave() {
  const std::lock_guard lock(mutex_);
  ++free_;
  left_.notify_one();
}

}  // namespace mortise::extender
