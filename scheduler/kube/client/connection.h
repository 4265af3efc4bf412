#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/kube/client/api_config.h"
#include "scheduler/kube/client/tls_context.h"

namespace mortise::kube {

/// When to give up. Times are of the machine's monotonic clock, which is what the kernel waits by.
struct IoLimits {
  Nanoseconds deadline = 0;  ///< for everything, as SteadyClock counts
  Nanoseconds silence = 0;   ///< longest wait for the next byte; 0: only the deadline counts
  int stop_fd = -1;          ///< gives up when this becomes readable; -1: never
};

/// Why a connection gave up.
enum class Trouble { kNone, kClosed, kTimedOut, kSilent, kStopped, kBroken };

/// One TCP connection, with TLS on it or not. Used by one thread at a time.
class Connection {
 public:
  /// Connects, and with `tls` shakes hands and verifies the server. Nothing of a request has been sent yet, whatever
  /// the error.
  static Result<std::unique_ptr<Connection>> open(const ServerAddress& server, const TlsContext* tls,
                                                  const IoLimits& limits);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void set_limits(const IoLimits& limits) { limits_ = limits; }

  /// At most `size` bytes; 0 at the orderly end of the input, -1 on trouble.
  ssize_t read(char* to, std::size_t size);
  /// `size`, or -1 on trouble.
  ssize_t write(const char* from, std::size_t size);

  /// Whether it can carry another request: nothing went wrong, the server has not closed it, and nothing has come that
  /// nobody asked for.
  bool reusable();

  int fd() const { return fd_; }
  Trouble trouble() const { return trouble_; }
  const std::string& trouble_text() const { return trouble_text_; }
  /// Bytes handed out by read().
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct FreeSession {
    void operator()(ssl_st* session) const;
  };
  explicit Connection(int fd, const IoLimits& limits) : limits_(limits), fd_(fd) {}

  Status start_tls(const TlsContext& tls);
  ssize_t fill();
  ssize_t receive(char* to, std::size_t size);
  ssize_t send_some(const char* from, std::size_t size);
  bool wait_after(int session_result);
  bool wait_for(short events);
  ssize_t give_up(Trouble trouble, std::string text);

  IoLimits limits_;
  int fd_;
  std::unique_ptr<ssl_st, FreeSession> session_;  // null: no TLS
  std::array<char, 16 * 1024> in_{};
  std::size_t begin_ = 0;  // of what is read ahead
  std::size_t end_ = 0;
  std::uint64_t bytes_read_ = 0;
  bool ended_ = false;
  Trouble trouble_ = Trouble::kNone;
  std::string trouble_text_;
};

}  // namespace mortise::kube
