#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "scheduler/base/clock.h"

namespace mortise::extender {

/// One accepted socket, read and written in large pieces. Bytes read ahead of one request stay for the next, so
/// pipelined requests work. Does not own the descriptor.
class Connection {
 public:
  // kube-scheduler's client drops idle connections after 90 s. A server that closes first races its next POST.
  static constexpr int kIdleSeconds = 120;

  /// However slowly a client sends, one request must be here within this time of its first byte: each connection
  /// holds a thread, and a few hundred that trickle must not keep kube-scheduler out.
  static constexpr int kRequestSeconds = 30;

  /// `clock` must outlive the connection.
  Connection(int fd, const Clock& clock);

  /// False when the client is gone or has been idle for too long.
  bool wait_for_request();
  /// The rest of the request is its body, which has a limit of its own.
  void end_header() { in_header_ = false; }

  /// At most `size` bytes; 0 at the end of the input, -1 on an error or a header that is too large.
  ssize_t read(char* to, std::size_t size);
  /// `size`, or -1. Small pieces (status line, headers, a short body) are kept and leave together.
  ssize_t write(const char* from, std::size_t size);
  /// Sends what is kept; false when the client is gone.
  bool flush();

  int fd() const { return fd_; }
  bool broken() const { return broken_; }
  void close_when_answered() { close_ = true; }
  bool closing() const { return close_ || broken_; }

 private:
  ssize_t fill();
  void send_all(const char* from, std::size_t size);

  int fd_;
  const Clock& clock_;
  Nanoseconds request_began_ = 0;
  std::vector<char> in_;
  std::size_t begin_ = 0;  // of what is read ahead
  std::size_t end_ = 0;
  std::string out_;
  bool in_header_ = true;
  std::size_t header_left_ = 0;
  bool close_ = false;
  bool broken_ = false;
};

}  // namespace mortise::extender
