#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

#include "scheduler/base/clock.h"
#include "scheduler/base/result.h"
#include "scheduler/kube/client/api_config.h"

namespace mortise::kube {

/// What an API server said.
struct ApiResponse {
  int status = 0;
  std::string body;
  std::string reason;   ///< of a Kubernetes Status, e.g. "Conflict"; empty on success
  std::string message;  ///< likewise, or the start of a body that is no Status; one line
  std::optional<Nanoseconds> retry_after;

  bool ok() const { return status >= 200 && status < 300; }
};

/// There is no answer, or not all of it.
struct TransportError {
  std::string message;           ///< one line
  bool may_have_arrived = true;  ///< false: surely no server has acted on the request
  bool stopped = false;          ///< the caller's stop token ended it
  bool silent = false;           ///< of stream(): nothing came for too long
};

/// Either of the two.
class [[nodiscard]] ApiResult {
 public:
  ApiResult(ApiResponse response) : data_(std::move(response)) {}
  ApiResult(TransportError error) : data_(std::move(error)) {}

  /// Null when there is no answer.
  const ApiResponse* response() const { return std::get_if<ApiResponse>(&data_); }
  /// Null when there is one.
  const TransportError* transport_error() const { return std::get_if<TransportError>(&data_); }
  bool ok() const { return response() != nullptr && response()->ok(); }
  /// Why it is not ok(), as one line: `409 Conflict: ...`, or the transport's error.
  std::string describe() const;

 private:
  std::variant<ApiResponse, TransportError> data_;
};

struct ApiOptions {
  Nanoseconds connect_timeout = 5 * kSecond;   ///< TCP and TLS, for each new connection
  Nanoseconds request_timeout = 30 * kSecond;  ///< of a whole exchange
  std::size_t max_response_bytes = std::size_t{256} << 20;
  std::size_t max_idle_connections = 32;
  Nanoseconds max_idle = 60 * kSecond;  ///< API servers close idle connections after 90 s or more
};

/// How one call differs from the options.
struct CallOptions {
  std::optional<Nanoseconds> timeout;
  std::stop_token stop;
};

struct StreamOptions {
  Nanoseconds timeout = 0;  ///< of the whole stream
  Nanoseconds silence = 0;  ///< longest time without a byte, the answer's first included
  std::stop_token stop;
};

/// Gets the body of a successful answer piece by piece; false ends the stream.
using StreamReceiver = std::function<bool(std::string_view piece)>;

/// Talks to one API server over kept connections. Safe for use by several threads at once; each call holds a
/// connection of its own. Nothing is retried, except a GET for which a kept connection turns out to be closed: that
/// goes out once more on a new one. Paths are percent-encoded and begin with `/`.
class ApiClient {
 public:
  /// `clock` must outlive the client. Does not connect yet; the error is about certificates or keys.
  static Result<std::unique_ptr<ApiClient>> make(const ApiConfig& config, const ApiOptions& options,
                                                 const Clock& clock);
  ~ApiClient();

  ApiResult get(const std::string& path, const CallOptions& call = {});
  ApiResult post(const std::string& path, std::string json, const CallOptions& call = {});
  ApiResult put(const std::string& path, std::string json, const CallOptions& call = {});
  /// A JSON merge patch (RFC 7386).
  ApiResult patch(const std::string& path, std::string json, const CallOptions& call = {});
  /// `json` is a DeleteOptions object or empty.
  ApiResult remove(const std::string& path, std::string json = {}, const CallOptions& call = {});

  /// A GET whose answer may go on for long, on a connection of its own. A successful answer's body goes to `receive`
  /// and is not in the result; another answer's body is. When `receive` ends the stream, that counts as its end.
  ApiResult stream(const std::string& path, const StreamReceiver& receive, const StreamOptions& call);

  const ServerAddress& server() const;

 private:
  class Impl;
  explicit ApiClient(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace mortise::kube
