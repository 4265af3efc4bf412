#include "scheduler/kube/client/stop_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace mortise::kube {

StopSignal::StopSignal(const std::stop_token& token) {
  if (!token.stop_possible()) return;
  fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd_ < 0) return;
  callback_.emplace(token, [fd = fd_] { eventfd_write(fd, 1); });
}

StopSignal::~StopSignal() {
  callback_.reset();  // waits for a call that is on its way; only then may the number be used again
  if (fd_ >= 0) close(fd_);
}

}  // namespace mortise::kube
