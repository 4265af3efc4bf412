#include "scheduler/kube/client/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

#include "scheduler/base/clock.h"

namespace mortise::kube {
namespace {

constexpr Nanoseconds kMillisecond = kSecond / 1000;

void set_option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

/// A watch is silent for long: the kernel then asks whether the other end is still there.
void set_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

std::string text_of(Trouble trouble) {
  return trouble == Trouble::kStopped ? "stopped" : "timed out";
}

/// Empty when connected, else the reason.
std::string connect_to(int fd, const addrinfo& to, const IoLimits& limits) {
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return std::strerror(errno);
  if (const Trouble trouble = wait_ready(fd, POLLOUT, limits); trouble != Trouble::kNone) return text_of(trouble);
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::string() : std::strerror(error);
}

}  // namespace

Trouble wait_ready(int fd, short events, const IoLimits& limits) {
  const SteadyClock clock;
  const Nanoseconds start = clock.now();
  // Written so that a deadline at the end of time does not overflow.
  const bool silence_first = limits.silence > 0 && limits.silence < limits.deadline - start;
  const Nanoseconds until = silence_first ? start + limits.silence : limits.deadline;
  for (;;) {
    const Nanoseconds left = std::max<Nanoseconds>(until - clock.now(), 0);
    const Nanoseconds wait_ms = std::min<Nanoseconds>(left / kMillisecond + 1, std::numeric_limits<int>::max());
    pollfd waited[2] = {{fd, events, 0}, {limits.stop_fd, POLLIN, 0}};
    const int ready = poll(waited, 2, left == 0 ? 0 : static_cast<int>(wait_ms));
    if (waited[1].revents != 0 && ready > 0) return Trouble::kStopped;
    if (ready > 0) return Trouble::kNone;
    if (ready < 0 && errno != EINTR) return Trouble::kBroken;
    if (clock.now() >= until) return silence_first ? Trouble::kSilent : Trouble::kTimedOut;
  }
}

Result<int> connect_socket(const ServerAddress& server, const IoLimits& limits) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &hints, &found);
  if (failed != 0) return Error{"cannot find " + server.host + ": " + gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);

  std::string reason = "it has no address";
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const int fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to->ai_protocol);
    if (fd < 0) {
      reason = std::strerror(errno);
      continue;
    }
    set_options(fd);
    reason = connect_to(fd, *to, limits);
    if (reason.empty()) return fd;
    close(fd);
  }
  return Error{"cannot connect to " + server.authority() + ": " + reason};
}

}  // namespace mortise::kube
