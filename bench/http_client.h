#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::bench {

/// Owns a socket.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();
  int fd() const { return fd_; }

 private:
  int fd_;
};

Result<Socket> connect_loopback(std::uint16_t port);

/// False when the connection broke.
bool send_all(int fd, std::string_view bytes);

/// A message as far as it was needed: how long its head and its body are, and the head.
struct Message {
  std::string head;
  std::size_t body_size = 0;
};

/// Reads one HTTP/1.1 message with a Content-Length into `buffer` (which then holds head and body).
Result<Message> read_message(int fd, std::string& buffer);

}  // namespace mortise::bench
