#include "scheduler/extender/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "scheduler/base/clock.h"
#include "scheduler/extender/connection.h"
#include "scheduler/extender/socket.h"
#include "scheduler/extender/tls.h"

namespace mortise::extender {
namespace {

constexpr int kBacklog = 1024;
constexpr int kHandshakeSeconds = 10;
/// So many connections beyond the limit are told that there are too many; more than these are closed without a word.
constexpr std::size_t kTurnedAwayAtOnce = 32;
/// They send their request at once: who does not must not keep others from being told.
constexpr int kTurnedAwaySeconds = 2;

std::string bound_address(int fd, bool& loopback) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(storage);
    loopback = (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(in.sin_port));
  }
  const auto& in6 = reinterpret_cast<const sockaddr_in6&>(storage);
  loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
  inet_ntop(AF_INET6, &in6.sin6_addr, text.data(), text.size());
  return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(in6.sin6_port));
}

/// The descriptor, or -1 with the reason in errno.
int listen_at(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (fd < 0) return -1;
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int why = errno;
  ::close(fd);
  errno = why;
  return -1;
}

}  // namespace

Listener::~Listener() {
  stop(0);
}

Status Listener::open(const Endpoint& at) {
  const auto refuse = [&](const char* why) {
    return Error{"cannot listen on " + at.host + ":" + std::to_string(at.port) + ": " + why};
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found); failed != 0) {
    return refuse(gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr && fd_ < 0; address = address->ai_next) {
    fd_ = listen_at(*address);
  }
  if (fd_ < 0) return refuse(std::strerror(errno));
  stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_fd_ < 0) return refuse(std::strerror(errno));
  address_ = bound_address(fd_, loopback_);
  return ok_status();
}

void Listener::run(Serve serve) {
  serve_ = std::move(serve);
  accepter_ = std::thread([this] { accept_all(); });
}

void Listener::accept_all() {
  std::array<pollfd, 2> waited{{{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
  while (!stopping_) {
    if (poll(waited.data(), waited.size(), -1) <= 0 || waited[1].revents != 0) continue;
    accept_one();
  }
}

void Listener::accept_one() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) {
    pollfd stop{stop_fd_, POLLIN, 0};
    // Until a connection closes; the new one stays in the backlog.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) poll(&stop, 1, 10);
    return;
  }
  const std::lock_guard lock(mutex_);
  join_finished();
  const Admission admission = served_ < options_.max_connections ? Admission::kServed : Admission::kTurnedAway;
  if (admission == Admission::kTurnedAway && options_.count_turned_away) options_.count_turned_away();
  if (admission == Admission::kTurnedAway && turned_away_ == kTurnedAwayAtOnce) {
    ::close(fd);
    return;
  }
  Worker& worker = workers_.emplace_back();
  worker.fd = fd;
  if (worker.thread.start([this, &worker, admission] { serve(worker, admission); })) {
    ++busy(admission);
  } else {
    ::close(fd);
    workers_.pop_back();
  }
}

/// With the mutex held.
void Listener::join_finished() {
  for (auto it = workers_.begin(); it != workers_.end();) {
    if (it->fd >= 0) {
      ++it;
      continue;
    }
    it->thread.join();
    it = workers_.erase(it);
  }
}

void Listener::serve(Worker& worker, Admission admission) {
  const auto count = [&](int by) {
    if (admission == Admission::kServed && options_.count_open) options_.count_open(by);
  };
  int fd = -1;
  {
    const std::lock_guard lock(mutex_);
    fd = worker.fd;
  }
  count(+1);
  try {
    serve_socket(fd, admission);
  } catch (...) {
    // Out of memory while reading a request, say. It costs this connection, not the server.
  }
  count(-1);
  const std::lock_guard lock(mutex_);
  ::close(fd);  // under the mutex, so that stop() never shuts a reused number down
  worker.fd = -1;
  --busy(admission);
  worker_done_.notify_all();
}

void Listener::serve_socket(int fd, Admission admission) {
  const SteadyClock clock;
  Socket socket(fd, clock);
  std::unique_ptr<TlsSession> tls;
  if (options_.tls != nullptr) {
    socket.receive_within(kHandshakeSeconds);
    tls = options_.tls->accept(socket);
    if (!tls) return;
  }
  Connection connection(socket, tls.get());
  if (admission == Admission::kTurnedAway) connection.hurry(kTurnedAwaySeconds);
  serve_(connection, admission);
  connection.finish();
}

void Listener::stop(Nanoseconds grace, const std::function<void()>& cut) {
  if (stopping_.exchange(true)) return;
  if (stop_fd_ >= 0) eventfd_write(stop_fd_, 1);
  if (accepter_.joinable()) accepter_.join();
  if (fd_ >= 0) ::close(fd_);
  {
    std::unique_lock lock(mutex_);
    worker_done_.wait_for(lock, std::chrono::nanoseconds(grace), [this] { return idle(); });
    for (const Worker& worker : workers_) {
      if (worker.fd >= 0) ::shutdown(worker.fd, SHUT_RDWR);
    }
    if (cut) cut();
    worker_done_.wait(lock, [this] { return idle(); });
    join_finished();
  }
  if (stop_fd_ >= 0) ::close(stop_fd_);
}

}  // namespace mortise::extender
