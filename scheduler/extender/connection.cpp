#include "scheduler/extender/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "scheduler/extender/tls.h"

namespace mortise::extender {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10;

}  // namespace

Connection::Connection(Socket& socket, TlsSession* tls) : socket_(socket), tls_(tls), in_(kBufferBytes) {}

bool Connection::wait_for_request(int stop_fd) {
  if (begin_ == end_ && (tls_ == nullptr || !tls_->has_pending())) {
    std::array<pollfd, 2> waited{{{socket_.fd(), POLLIN, 0}, {stop_fd, POLLIN, 0}}};
    int ready = 0;
    do {
      ready = poll(waited.data(), waited.size(), idle_seconds_ * 1000);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0 || waited[0].revents == 0) return false;
  }
  socket_.receive_within(request_seconds_);
  return begin_ < end_ || fill() > 0;
}

bool Connection::read_line(std::string& line, std::size_t limit) {
  line.clear();
  while (line.size() < limit) {
    const std::string_view there = peek().substr(0, limit - line.size());
    if (there.empty()) return false;
    const std::size_t end = there.find('\n');
    const std::size_t count = end == std::string_view::npos ? there.size() : end + 1;
    line.append(there.substr(0, count));
    consume(count);
    if (end != std::string_view::npos) return true;
  }
  return false;
}

Connection::Head Connection::read_head(std::string& head) {
  head.clear();
  std::string line;
  do {
    const std::size_t left = kMaxHeadBytes - head.size();
    if (!read_line(line, left)) return line.size() == left ? Head::kTooLarge : Head::kCutShort;
    const bool empty = line == "\r\n" || line == "\n";
    if (empty && head.empty()) continue;
    head += line;
    if (empty) return Head::kWhole;
  } while (true);
}

std::string_view Connection::peek() {
  // The client may be waiting for "100 Continue".
  if (begin_ == end_ && (!flush() || fill() <= 0)) return {};
  return {in_.data() + begin_, end_ - begin_};
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

void Connection::finish() {
  flush();
  if (tls_ != nullptr && !broken_) tls_->say_goodbye();
  if (!broken_ && close_) socket_.drain();
}

ssize_t Connection::fill() {
  const ssize_t count =
      tls_ != nullptr ? tls_->receive(in_.data(), in_.size()) : socket_.receive(in_.data(), in_.size());
  if (count < 0) broken_ = true;
  begin_ = 0;
  end_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  return count;
}

/// Sends what is kept, then `size` bytes more.
void Connection::send_all(const char* from, std::size_t size) {
  if (tls_ != nullptr) {
    broken_ = broken_ || !tls_->send(out_.data(), out_.size()) || !tls_->send(from, size);
  } else {
    std::array<iovec, 2> pieces{{{out_.data(), out_.size()}, {const_cast<char*>(from), size}}};
    broken_ = broken_ || !socket_.send(pieces);
  }
  out_.clear();
}

}  // namespace mortise::extender
