#include "scheduler/kube/client/api_client.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/client/connection_pool.h"
#include "scheduler/kube/client/http_exchange.h"
#include "scheduler/kube/client/stop_signal.h"
#include "scheduler/kube/client/tls_context.h"
#include "scheduler/kube/client/token_source.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxMessageBytes = 1000;
constexpr std::size_t kMaxErrorBodyBytes = std::size_t{1} << 20;
constexpr const char* kJson = "application/json";
constexpr const char* kMergePatch = "application/merge-patch+json";

std::string text_member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Whole seconds, as API servers write it; a date is not believed, for that takes two clocks that agree.
std::optional<Nanoseconds> parse_retry_after(std::string_view text) {
  constexpr std::int64_t kLongest = 24L * 3600;
  std::int64_t seconds = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (status != std::errc{} || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::min(seconds, kLongest) * kSecond;
}

/// Fills in what a Kubernetes Status says.
void explain(ApiResponse& response) {
  const auto status = parse_json_text(response.body, {});
  if (status && status->is_object()) {
    response.reason = one_line(text_member(*status, "reason"));
    response.message = one_line(text_member(*status, "message"), kMaxMessageBytes);
  } else {
    response.message = one_line(response.body, kMaxMessageBytes);
  }
}

std::string seconds_text(Nanoseconds time) {
  json number = static_cast<double>(time) / static_cast<double>(kSecond);
  return number.dump() + " s";
}

}  // namespace

std::string ApiResult::describe() const {
  if (const TransportError* error = transport_error()) return error->message;
  const ApiResponse& answer = *response();
  std::string text = std::to_string(answer.status);
  if (!answer.reason.empty()) text += " " + answer.reason;
  if (!answer.message.empty()) text += ": " + answer.message;
  return text;
}

class ApiClient::Impl {
 public:
  Impl(const ApiConfig& config, const ApiOptions& options, std::shared_ptr<const TlsContext> tls, const Clock& clock)
      : server_(config.server),
        options_(options),
        tls_(std::move(tls)),
        token_(config.token, config.token_file, clock),
        pool_(options.max_idle_connections, options.max_idle, clock) {}

  struct Call {
    const char* method;
    std::string path;
    std::string body;
    const char* content_type = kJson;
    Nanoseconds timeout = 0;
    Nanoseconds silence = 0;
    std::stop_token stop;
  };

  ApiResult send(const char* method, const std::string& path, std::string body, const CallOptions& options,
                 const char* content_type = kJson) {
    return send({method, path, std::move(body), content_type, options.timeout.value_or(options_.request_timeout), 0,
                 options.stop});
  }
  ApiResult stream(const Call& call, const StreamReceiver& receive);
  const ServerAddress& server() const { return server_; }

 private:
  /// What one exchange needs and yields.
  struct Attempt {
    std::unique_ptr<Connection> connection;
    bool reused = false;
    HttpHead head;
    ExchangeEnd end = ExchangeEnd::kNotSent;
  };

  Result<HttpRequest> build(const Call& call);
  ApiResult send(const Call& call);
  std::optional<TransportError> connect(Attempt& attempt, const Call& call, const IoLimits& limits, bool may_reuse);
  ApiResult answered(Attempt& attempt, std::string body);

  const ServerAddress server_;
  const ApiOptions options_;
  const std::shared_ptr<const TlsContext> tls_;  // null: plain HTTP
  TokenSource token_;
  ConnectionPool pool_;
  const SteadyClock steady_;
};

namespace {

TransportError failed(const char* method, const std::string& path, const std::string& what, bool may_have_arrived) {
  TransportError error;
  error.message = std::string(method) + " " + one_line(path.substr(0, path.find('?')), 200) + ": " +
                  one_line(what, kMaxMessageBytes);
  error.may_have_arrived = may_have_arrived;
  return error;
}

/// Whether a kept connection was closed by the server before it saw our request.
bool was_stale(const Connection& connection, ExchangeEnd end) {
  if (end != ExchangeEnd::kNotSent && end != ExchangeEnd::kNoAnswer) return false;
  const Trouble trouble = connection.trouble();
  return trouble == Trouble::kNone || trouble == Trouble::kClosed || trouble == Trouble::kBroken;
}

/// Tells what went wrong with an exchange that is not complete.
TransportError broken(const char* method, const std::string& path, const Connection& connection, ExchangeEnd end,
                      Nanoseconds timeout) {
  std::string why = connection.trouble_text();
  switch (connection.trouble()) {
    case Trouble::kTimedOut:
      why += " after " + seconds_text(timeout);
      break;
    case Trouble::kNone:
      why = end == ExchangeEnd::kCutShort ? "it is not HTTP, or the server closed the connection"
                                          : "the server closed the connection";
      break;
    default:
      break;
  }
  const char* what = end == ExchangeEnd::kNotSent    ? "the request could not be sent: "
                     : end == ExchangeEnd::kNoAnswer ? "no answer: "
                                                     : "the answer broke off: ";
  TransportError error = failed(method, path, what + why, end != ExchangeEnd::kNotSent);
  error.stopped = connection.trouble() == Trouble::kStopped;
  error.silent = connection.trouble() == Trouble::kSilent;
  return error;
}

}  // namespace

Result<HttpRequest> ApiClient::Impl::build(const Call& call) {
  Result<std::string> token = token_.current();
  if (!token) return token.error();
  HttpRequest request;
  request.method = call.method;
  request.target = server_.base_path + call.path;
  request.host = server_.authority();
  request.token = *std::move(token);
  request.body = call.body;
  if (!call.body.empty()) request.content_type = call.content_type;
  return request;
}

ApiResult ApiClient::Impl::answered(Attempt& attempt, std::string body) {
  ApiResponse response;
  response.status = attempt.head.status;
  response.retry_after = parse_retry_after(attempt.head.retry_after);
  response.body = std::move(body);
  if (!response.ok()) explain(response);
  if (response.status == 401) token_.distrust();
  if (attempt.end == ExchangeEnd::kComplete && attempt.head.keeps_connection) pool_.give(std::move(attempt.connection));
  return response;
}

/// Gives the attempt a connection; what went wrong, if something did.
std::optional<TransportError> ApiClient::Impl::connect(Attempt& attempt, const Call& call, const IoLimits& limits,
                                                       bool may_reuse) {
  if (may_reuse) attempt.connection = pool_.take();
  attempt.reused = attempt.connection != nullptr;
  if (!attempt.reused) {
    IoLimits opening = limits;
    opening.silence = 0;
    opening.deadline = std::min(limits.deadline, steady_.now() + options_.connect_timeout);
    Result<std::unique_ptr<Connection>> opened = Connection::open(server_, tls_.get(), opening);
    if (!opened) {
      TransportError error = failed(call.method, call.path, opened.message(), false);
      error.stopped = call.stop.stop_requested();
      return error;
    }
    attempt.connection = *std::move(opened);
  }
  attempt.connection->set_limits(limits);
  return std::nullopt;
}

ApiResult ApiClient::Impl::send(const Call& call) {
  const StopSignal stop(call.stop);
  const IoLimits limits{steady_.now() + call.timeout, 0, stop.fd()};
  const Result<HttpRequest> request = build(call);
  if (!request) return failed(call.method, call.path, request.message(), false);

  for (bool retry = false;; retry = true) {
    Attempt attempt;
    if (const auto error = connect(attempt, call, limits, !retry)) return *error;
    std::string body;
    attempt.end = exchange(*attempt.connection, *request, attempt.head, [&](const HttpHead&, std::string_view piece) {
      if (piece.size() > options_.max_response_bytes - body.size()) return false;
      body += piece;
      return true;
    });
    if (attempt.end == ExchangeEnd::kComplete) return answered(attempt, std::move(body));
    if (attempt.end == ExchangeEnd::kUnwanted) {
      const std::string limit = std::to_string(options_.max_response_bytes);
      return failed(call.method, call.path, "the answer is larger than " + limit + " bytes", true);
    }
    const bool again =
        attempt.reused && std::string_view(call.method) == "GET" && was_stale(*attempt.connection, attempt.end);
    if (!again) return broken(call.method, call.path, *attempt.connection, attempt.end, call.timeout);
    pool_.clear();  // the others are as old
  }
}

ApiResult ApiClient::Impl::stream(const Call& call, const StreamReceiver& receive) {
  const StopSignal stop(call.stop);
  const IoLimits limits{steady_.now() + call.timeout, call.silence, stop.fd()};
  const Result<HttpRequest> request = build(call);
  if (!request) return failed(call.method, call.path, request.message(), false);

  Attempt attempt;
  if (const auto error = connect(attempt, call, limits, /*may_reuse=*/false)) return *error;
  std::string error_body;
  attempt.end =
      exchange(*attempt.connection, *request, attempt.head, [&](const HttpHead& head, std::string_view piece) {
        if (head.status >= 200 && head.status < 300) return receive(piece);
        error_body += piece.substr(0, kMaxErrorBodyBytes - error_body.size());
        return error_body.size() < kMaxErrorBodyBytes;
      });
  if (attempt.end == ExchangeEnd::kComplete || attempt.end == ExchangeEnd::kUnwanted) {
    return answered(attempt, std::move(error_body));
  }
  return broken(call.method, call.path, *attempt.connection, attempt.end, call.timeout);
}

ApiClient::ApiClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ApiClient::~ApiClient() = default;

Result<std::unique_ptr<ApiClient>> ApiClient::make(const ApiConfig& config, const ApiOptions& options,
                                                   const Clock& clock) {
  std::shared_ptr<const TlsContext> tls;
  if (config.server.tls) {
    Result<std::shared_ptr<const TlsContext>> made = TlsContext::make(config);
    if (!made) return made.error();
    tls = *std::move(made);
  }
  if (!config.token.empty() && !is_bearer_token(config.token)) {
    return Error{"the token has blanks or control characters"};
  }
  return std::unique_ptr<ApiClient>(new ApiClient(std::make_unique<Impl>(config, options, std::move(tls), clock)));
}

const ServerAddress& ApiClient::server() const {
  return impl_->server();
}

ApiResult ApiClient::get(const std::string& path, const CallOptions& call) {
  return impl_->send("GET", path, {}, call);
}

ApiResult ApiClient::post(const std::string& path, std::string json, const CallOptions& call) {
  return impl_->send("POST", path, std::move(json), call);
}

ApiResult ApiClient::put(const std::string& path, std::string json, const CallOptions& call) {
  return impl_->send("PUT", path, std::move(json), call);
}

ApiResult ApiClient::patch(const std::string& path, std::string json, const CallOptions& call) {
  return impl_->send("PATCH", path, std::move(json), call, kMergePatch);
}

ApiResult ApiClient::remove(const std::string& path, std::string json, const CallOptions& call) {
  return impl_->send("DELETE", path, std::move(json), call);
}

ApiResult ApiClient::stream(const std::string& path, const StreamReceiver& receive, const StreamOptions& call) {
  return impl_->stream({"GET", path, {}, kJson, call.timeout, call.silence, call.stop}, receive);
}

}  // namespace mortise::kube
