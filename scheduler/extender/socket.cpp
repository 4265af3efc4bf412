#include "scheduler/extender/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace mortise::extender {
namespace {
constexpr int kTransferSeconds = 10;  // without a byte in either direction
constexpr int kDrainSeconds = 1;

/// Whether the peer is on this machine.
bool is_loopback(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  if (address.ss_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

}  // namespace

Socket::Socket(int fd, const Clock& clock) : fd_(fd), clock_(clock) {
  const int yes = 1;
  const timeval limit{kTransferSeconds, 0};
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  set_receive_timeout(kTransferSeconds);
  // BBR, the default of many machines, paces what is sent; on loopback that is delay and nothing else. Reno is always
  // there.
  if (is_loopback(fd_)) setsockopt(fd_, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

void Socket::set_receive_timeout(int seconds) const {
  const timeval limit{seconds, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void Socket::receive_within(int seconds) {
  deadline_ = clock_.now() + seconds * kSecond;
}

ssize_t Socket::receive(char* to, std::size_t size) {
  if (clock_.now() > deadline_) return -1;
  ssize_t count = 0;
  do {
    count = recv(fd_, to, size, 0);
  } while (count < 0 && errno == EINTR);
  return count;
}

bool Socket::send(std::span<iovec> pieces) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  while (std::any_of(pieces.begin(), pieces.end(), [](const iovec& piece) { return piece.iov_len > 0; })) {
    const ssize_t count = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    auto sent = static_cast<std::size_t>(count);
    for (iovec& piece : pieces) {
      const std::size_t part = std::min(sent, piece.iov_len);
      if (part > 0) piece.iov_base = static_cast<char*>(piece.iov_base) + part;
      piece.iov_len -= part;
      sent -= part;
    }
  }
  return true;
}

void Socket::drain() {
  ::shutdown(fd_, SHUT_WR);
  set_receive_timeout(kDrainSeconds);
  receive_within(kDrainSeconds);
  std::array<char, 4096> dropped{};
  while (receive(dropped.data(), dropped.size()) > 0) {
  }
}

}  // namespace mortise::extender
