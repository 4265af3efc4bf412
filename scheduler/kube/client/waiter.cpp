#include "scheduler/kube/client/waiter.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace mortise::kube {

void SleepingWaiter::wait(Nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, std::chrono::nanoseconds(time), [] { return false; });
}

}  // namespace mortise::kube
