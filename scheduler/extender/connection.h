#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/socket.h"

namespace mortise::extender {

class TlsSession;

/// One client, read and written in large pieces. Bytes read ahead of one request stay for the next, so pipelined
/// requests work.
class Connection {
 public:
  // kube-scheduler's client drops idle connections after 90 s. A server that closes first races its next POST.
  static constexpr int kIdleSeconds = 120;

  /// However slowly a client sends, one request must be here within this time of its first byte: each connection
  /// holds a thread, and a few hundred that trickle must not keep kube-scheduler out.
  static constexpr int kRequestSeconds = 30;

  /// In the clear when `tls` is null. All must outlive the connection.
  explicit Connection(Socket& socket, TlsSession* tls = nullptr);

  /// From now on the client gets only so much time to begin a request, and to end it.
  void hurry(int seconds) { idle_seconds_ = request_seconds_ = seconds; }

  /// False when the client is gone, has been idle for too long, or `stop_fd` is readable and the client has sent
  /// nothing yet. `stop_fd` may be -1.
  bool wait_for_request(int stop_fd);

  enum class Head { kWhole, kCutShort, kTooLarge };
  /// The head of a request up to and with its empty line; empty lines before it are dropped.
  Head read_head(std::string& head);
  /// A line with its end, at most `limit` bytes; false when there is none.
  bool read_line(std::string& line, std::size_t limit);
  /// What is there to be read, waiting for something; empty at the end of the input.
  std::string_view peek();
  void consume(std::size_t count) { begin_ += count; }

  /// `size`, or -1. Small pieces (status line, headers, a short body) are kept and leave together.
  ssize_t write(const char* from, std::size_t size);
  /// Sends what is kept; false when the client is gone.
  bool flush();
  /// Says goodbye. A client that is still sending is read for a moment more: what it was answered would be lost if the
  /// socket were closed with bytes unread.
  void finish();

  bool broken() const { return broken_; }
  void close_when_answered() { close_ = true; }
  bool closing() const { return close_ || broken_; }

 private:
  ssize_t fill();
  void send_all(const char* from, std::size_t size);

  Socket& socket_;
  TlsSession* tls_;
  std::vector<char> in_;
  std::size_t begin_ = 0;  // of what is read ahead
  std::size_t end_ = 0;
  std::string out_;
  int idle_seconds_ = kIdleSeconds;
  int request_seconds_ = kRequestSeconds;
  bool close_ = false;
  bool broken_ = false;
};

}  // namespace mortise::extender
