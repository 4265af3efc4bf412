#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "scheduler/base/clock.h"

namespace mortise::extender {

/// One accepted socket, in the clear. Gives up on a peer that is silent for too long, or too slow. Does not own the
/// descriptor.
class Socket {
 public:
  /// `clock` must outlive the socket.
  Socket(int fd, const Clock& clock);

  /// Whatever is still to be received must be here within this time from now, however it trickles.
  void receive_within(int seconds);

  /// At most `size` bytes; 0 at the end of the input, -1 on an error or when the time is over.
  ssize_t receive(char* to, std::size_t size);
  /// All of the pieces, which it advances; false when the peer is gone or takes nothing.
  bool send(std::span<iovec> pieces);

  /// Says that no more is sent, and reads and drops what the peer still sends, for a moment.
  void drain();

  int fd() const { return fd_; }

 private:
  void set_receive_timeout(int seconds) const;

  int fd_;
  const Clock& clock_;
  Nanoseconds deadline_ = 0;
};

}  // namespace mortise::extender
