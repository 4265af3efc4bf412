#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "scheduler/base/result.h"
#include "scheduler/extender/endpoint.h"
#include "scheduler/extender/service.h"

namespace mortise::extender {

struct ServerOptions {
  std::size_t max_request_bytes = std::size_t{256} << 20;
  std::size_t max_connections = 512;  ///< beyond, new ones wait; each has a thread
  bool allow_bind = false;            ///< serve bind on an address that is not loopback, too
};

/// One listening socket and the threads that serve it.
class HttpServer {
 public:
  /// POST /filter, /prioritize, /bind and /preempt. Accepts connections once this returns.
  static Result<std::unique_ptr<HttpServer>> start_scheduler(Service& service, const Endpoint& at,
                                                             const ServerOptions& options);
  /// GET /healthz, /readyz and /metrics.
  static Result<std::unique_ptr<HttpServer>> start_admin(Service& service, const Endpoint& at);

  /// Stops.
  ~HttpServer();

  /// `ADDR:PORT` as bound.
  std::string address() const;
  /// Takes no more requests, finishes those being answered, closes every connection. Safe to call twice.
  void stop();

 private:
  class Listener;
  explicit HttpServer(std::unique_ptr<Listener> listener);

  std::unique_ptr<Listener> listener_;
};

}  // namespace mortise::extender
