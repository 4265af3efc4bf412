#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "scheduler/base/result.h"
#include "scheduler/extender/socket.h"

struct ssl_ctx_st;
struct ssl_st;

namespace mortise::extender {

/// PEM files; the certificate may bring its chain with it.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string client_ca;  ///< given: only clients with a certificate it signed are let in
};

/// The way of a session's records to its socket. Those of one answer, which OpenSSL writes one by one, leave together:
/// for each that arrives alone the client is woken up.
class TlsLink {
 public:
  explicit TlsLink(Socket& socket) : socket_(socket) {}

  ssize_t receive(char* to, std::size_t size);
  bool send(const char* from, std::size_t size);
  /// Sends what is kept.
  bool flush();

 private:
  Socket& socket_;
  std::string kept_;
};

/// One encrypted connection on a socket.
class TlsSession {
 public:
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// As Socket::receive.
  ssize_t receive(char* to, std::size_t size);
  bool send(const char* from, std::size_t size);
  /// Decrypted bytes are at hand that poll() does not see.
  bool has_pending() const;
  /// Tells the client that nothing more comes, so that it can tell the end from a cut.
  void say_goodbye();

 private:
  friend class TlsContext;
  TlsSession(ssl_st* ssl, Socket& socket) : ssl_(ssl), link_(socket) {}

  ssl_st* ssl_;
  TlsLink link_;
};

/// The certificate, key and client CA of a listener: TLS 1.2 or newer, HTTP/1.1. Thread-safe.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> load(TlsFiles files);

  /// The handshake, on a socket with a deadline. Null: it failed, and the client was told.
  std::unique_ptr<TlsSession> accept(Socket& socket) const;

  /// Reads the files again. An error leaves in place what was loaded before.
  Status reload();
  /// The same if a file is not the one that was read last; empty when all are.
  std::optional<Status> reload_if_changed();

  /// When the certificate in use ends, in Unix seconds.
  std::int64_t expires() const;

 private:
  /// What tells that a file was replaced or written to.
  struct FileMark {
    std::uint64_t inode = 0;
    std::int64_t size = -1;
    std::int64_t modified = 0;  // nanoseconds
    friend bool operator==(const FileMark&, const FileMark&) = default;
  };
  using Marks = std::array<FileMark, 3>;

  explicit TlsContext(TlsFiles files) : files_(std::move(files)) {}
  Marks marks() const;
  std::shared_ptr<ssl_ctx_st> current() const;

  const TlsFiles files_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<ssl_ctx_st> context_;
  Marks read_{};
};

}  // namespace mortise::extender
