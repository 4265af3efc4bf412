#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "scheduler/kube/client/connection.h"

namespace mortise::kube {

struct HttpRequest {
  std::string method;
  std::string target;  ///< path and query, percent-encoded
  std::string host;    ///< HOST:PORT
  std::string token;   ///< empty: no Authorization header
  std::string content_type;
  std::string body;
};

struct HttpHead {
  int status = 0;  ///< 0: none came
  std::string retry_after;
  bool keeps_connection = false;
};

/// How far an exchange got.
enum class ExchangeEnd {
  kComplete,  ///< the whole answer is here
  kNotSent,   ///< the request did not leave in full, so no server can have acted on it
  kNoAnswer,  ///< the request left, but not one byte came back
  kCutShort,  ///< the answer broke off, or is not HTTP
  kUnwanted,  ///< the receiver took no more
};

/// Gets the body of an answer piece by piece, after its head; false ends the exchange.
using BodyReceiver = std::function<bool(const HttpHead& head, std::string_view piece)>;

/// Sends one request and reads its answer. httplib does the HTTP; the bytes and the limits are the connection's.
ExchangeEnd exchange(Connection& connection, const HttpRequest& request, HttpHead& head, const BodyReceiver& receive);

}  // namespace mortise::kube
