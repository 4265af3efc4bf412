#pragma once

#include <functional>
#include <optional>
#include <stop_token>

namespace mortise::kube {

/// A stop token as something that poll() can wait for.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& token);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Readable once stop was asked for; -1 when nobody can ask.
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

}  // namespace mortise::kube
