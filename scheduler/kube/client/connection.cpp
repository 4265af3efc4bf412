#include "scheduler/kube/client/connection.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "scheduler/base/clock.h"
#include "scheduler/kube/client/socket.h"

namespace mortise::kube {
namespace {

/// OpenSSL's own socket BIO writes with write(2), which raises SIGPIPE in whatever process this library is part of.
int bio_write(BIO* bio, const char* from, int size) {
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  const ssize_t count = send(fd, from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int bio_read(BIO* bio, char* to, int size) {
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  const ssize_t count = recv(fd, to, static_cast<std::size_t>(size), 0);
  if (count == 0) errno = 0;  // the end of the input is no error of the socket
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

long bio_control(BIO*, int what, long, void*) {
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* new_socket_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    if (made == nullptr) return made;
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  BIO* bio = method == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

const char* text_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::kTimedOut:
      return "timed out";
    case Trouble::kSilent:
      return "nothing came for too long";
    case Trouble::kStopped:
      return "stopped";
    case Trouble::kNone:
    case Trouble::kClosed:
    case Trouble::kBroken:
      break;
  }
  return "the connection is broken";
}

}  // namespace

void Connection::FreeSession::operator()(ssl_st* session) const {
  SSL_free(session);
}

Result<std::unique_ptr<Connection>> Connection::open(const ServerAddress& server, const TlsContext* tls,
                                                     const IoLimits& limits) {
  const Result<int> fd = connect_socket(server, limits);
  if (!fd) return fd.error();
  std::unique_ptr<Connection> connection(new Connection(*fd, limits));
  if (tls != nullptr) {
    if (const Status started = connection->start_tls(*tls); !started) {
      return Error{"no TLS connection to " + server.authority() + ": " + started.message()};
    }
  }
  return connection;
}

Connection::~Connection() {
  if (session_ && trouble_ == Trouble::kNone) {
    SSL_shutdown(session_.get());  // tells the server; its answer is not waited for
    ERR_clear_error();
  }
  close(fd_);
}

Status Connection::start_tls(const TlsContext& tls) {
  session_.reset(tls.new_session());
  BIO* bio = session_ ? new_socket_bio(fd_) : nullptr;
  if (bio == nullptr) {
    trouble_ = Trouble::kBroken;
    return Error{"it cannot be set up"};
  }
  SSL_set_bio(session_.get(), bio, bio);
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(session_.get());
    if (result == 1) return ok_status();
    if (wait_after(result)) continue;
    const long verified = SSL_get_verify_result(session_.get());
    if (verified != X509_V_OK) {
      return Error{std::string("the server's certificate is refused: ") + X509_verify_cert_error_string(verified)};
    }
    return Error{trouble_text_};
  }
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (begin_ == end_) {
    const ssize_t count = fill();
    if (count <= 0) return count;
  }
  const std::size_t count = std::min(size, end_ - begin_);
  std::memcpy(to, in_.data() + begin_, count);
  begin_ += count;
  bytes_read_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::fill() {
  if (ended_) return 0;
  begin_ = end_ = 0;
  const ssize_t count = receive(in_.data(), in_.size());
  if (count == 0) ended_ = true;
  if (count > 0) end_ = static_cast<std::size_t>(count);
  return count;
}

ssize_t Connection::receive(char* to, std::size_t size) {
  while (trouble_ == Trouble::kNone) {
    if (session_) {
      ERR_clear_error();
      const int count = SSL_read(session_.get(), to, static_cast<int>(size));
      if (count > 0) return count;
      if (SSL_get_error(session_.get(), count) == SSL_ERROR_ZERO_RETURN) return 0;
      wait_after(count);
    } else {
      const ssize_t count = recv(fd_, to, size, 0);
      if (count >= 0) return count;
      if (errno == EAGAIN) {
        wait_for(POLLIN);
      } else if (errno != EINTR) {
        give_up(errno == ECONNRESET ? Trouble::kClosed : Trouble::kBroken, std::strerror(errno));
      }
    }
  }
  return -1;
}

ssize_t Connection::write(const char* from, std::size_t size) {
  std::size_t sent = 0;
  while (sent < size) {
    const ssize_t count = send_some(from + sent, size - sent);
    if (count < 0) return -1;
    sent += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(size);
}

ssize_t Connection::send_some(const char* from, std::size_t size) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (trouble_ == Trouble::kNone) {
    // A process that was stopped for long finds its socket ready, and its time over.
    if (SteadyClock().now() >= limits_.deadline) return give_up(Trouble::kTimedOut, text_of(Trouble::kTimedOut));
    if (session_) {
      ERR_clear_error();
      const int count = SSL_write(session_.get(), from, static_cast<int>(std::min(size, kPiece)));
      if (count > 0) return count;
      wait_after(count);
    } else {
      const ssize_t count = send(fd_, from, std::min(size, kPiece), MSG_NOSIGNAL);
      if (count >= 0) return count;
      if (errno == EAGAIN) {
        wait_for(POLLOUT);
      } else if (errno != EINTR) {
        give_up(errno == ECONNRESET || errno == EPIPE ? Trouble::kClosed : Trouble::kBroken, std::strerror(errno));
      }
    }
  }
  return -1;
}

/// Waits for what the session needs; false on trouble, which is then noted.
bool Connection::wait_after(int session_result) {
  const int socket_error = errno;
  switch (SSL_get_error(session_.get(), session_result)) {
    case SSL_ERROR_WANT_READ:
      return wait_for(POLLIN);
    case SSL_ERROR_WANT_WRITE:
      return wait_for(POLLOUT);
    case SSL_ERROR_ZERO_RETURN:
      give_up(Trouble::kClosed, "the server closed the connection");
      return false;
    case SSL_ERROR_SYSCALL:
      // No byte and no error of the socket: the other end is gone without a goodbye.
      give_up(Trouble::kClosed, session_result < 0 && socket_error != 0 ? std::strerror(socket_error)
                                                                        : "the server closed the connection");
      return false;
    default:
      give_up(Trouble::kBroken, tls_error_text());
      return false;
  }
}

bool Connection::wait_for(short events) {
  const Trouble trouble = wait_ready(fd_, events, limits_);
  if (trouble == Trouble::kNone) return true;
  give_up(trouble, text_of(trouble));
  return false;
}

ssize_t Connection::give_up(Trouble trouble, std::string text) {
  trouble_ = trouble;
  trouble_text_ = std::move(text);
  return -1;
}

bool Connection::reusable() {
  if (trouble_ != Trouble::kNone || ended_ || begin_ != end_) return false;
  pollfd waited{fd_, POLLIN, 0};
  if (poll(&waited, 1, 0) == 0) return true;
  if (!session_) return false;
  // TLS 1.3 sends tickets for later sessions at any time; reading takes them in and finds no data.
  char byte = 0;
  ERR_clear_error();
  const int result = SSL_peek(session_.get(), &byte, 1);
  const bool alive = result <= 0 && SSL_get_error(session_.get(), result) == SSL_ERROR_WANT_READ;
  ERR_clear_error();
  if (!alive) trouble_ = Trouble::kClosed;
  return alive;
}

}  // namespace mortise::kube
