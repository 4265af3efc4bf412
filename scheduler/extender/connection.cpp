#include "scheduler/extender/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace mortise::extender {
namespace {

constexpr int kTransferSeconds = 10;  // without a byte in either direction
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;

}  // namespace

Connection::Connection(int fd, const Clock& clock) : fd_(fd), clock_(clock), in_(kBufferBytes) {
  const int yes = 1;
  const timeval limit{kTransferSeconds, 0};
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool Connection::wait_for_request() {
  in_header_ = true;
  header_left_ = kMaxHeaderBytes;
  request_began_ = clock_.now();
  if (begin_ < end_) return true;
  pollfd waited{fd_, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&waited, 1, kIdleSeconds * 1000);
  } while (ready < 0 && errno == EINTR);
  request_began_ = clock_.now();
  return ready > 0 && fill() > 0;
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (in_header_) {
    if (size > header_left_) return -1;
    header_left_ -= size;
  }
  if (begin_ == end_) {
    if (!flush()) return -1;  // the client may be waiting for "100 Continue"
    const ssize_t count = fill();
    if (count <= 0) return count;
  }
  const std::size_t count = std::min(size, end_ - begin_);
  std::memcpy(to, in_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, std::size_t size) {
  if (out_.size() + size <= kBufferBytes) {
    out_.append(from, size);
  } else {
    send_all(from, size);
  }
  return broken_ ? -1 : static_cast<ssize_t>(size);
}

bool Connection::flush() {
  if (!out_.empty()) send_all(nullptr, 0);
  return !broken_;
}

ssize_t Connection::fill() {
  if (clock_.now() - request_began_ > kRequestSeconds * kSecond) {
    broken_ = true;
    return -1;
  }
  ssize_t count = 0;
  do {
    count = recv(fd_, in_.data(), in_.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) broken_ = true;
  begin_ = 0;
  end_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  return count;
}

/// Sends what is kept, then `size` bytes more.
void Connection::send_all(const char* from, std::size_t size) {
  std::array<iovec, 2> pieces{{{out_.data(), out_.size()}, {const_cast<char*>(from), size}}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  while (!broken_ && pieces[0].iov_len + pieces[1].iov_len > 0) {
    const ssize_t count = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) broken_ = true;
    auto sent = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    for (iovec& piece : pieces) {
      const std::size_t part = std::min(sent, piece.iov_len);
      if (part > 0) piece.iov_base = static_cast<char*>(piece.iov_base) + part;
      piece.iov_len -= part;
      sent -= part;
    }
  }
  out_.clear();
}

}  // namespace mortise::extender
