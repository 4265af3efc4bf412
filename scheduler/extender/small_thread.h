#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace mortise::extender {

/// A thread with a small stack: there is one for each connection, and most of them wait.
class SmallThread {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{512} << 10;

  SmallThread() = default;
  SmallThread(const SmallThread&) = delete;
  SmallThread& operator=(const SmallThread&) = delete;

  /// False when there is no thread to be had. `work` must not throw.
  bool start(std::function<void()> work);
  /// Waits for the end of what was started.
  void join();

 private:
  std::function<void()> work_;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace mortise::extender
