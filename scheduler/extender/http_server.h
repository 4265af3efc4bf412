#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/extender/endpoint.h"
#include "scheduler/extender/service.h"

namespace mortise::extender {

class AdminToken;
class ClusterView;
class Readiness;
class TlsContext;

struct ServerOptions {
  std::size_t max_request_bytes = std::size_t{256} << 20;
  std::size_t max_connections = 1280;       ///< each has a thread; more are answered 503
  std::size_t max_verbs = 0;                ///< filters and prioritizes at once; 0: twice the number of processors
  Nanoseconds verb_patience = 1 * kSecond;  ///< how long one may wait for its turn before it is answered 503
  bool allow_bind = false;                  ///< serve bind on an address that is not loopback, too
  const TlsContext* tls = nullptr;          ///< null: in the clear; must outlive the server
  const Readiness* readiness = nullptr;     ///< null: always ready; must outlive the server
  Metrics* metrics = nullptr;               ///< null: not counted; must outlive the server
  std::function<void()> asked = {};         ///< called for each verb that comes in, be it refused as not ready
};

struct AdminOptions {
  const Readiness* readiness = nullptr;  ///< null: always ready; must outlive the server
  Metrics* metrics = nullptr;            ///< null: not counted; must outlive the server
  ClusterView* view = nullptr;           ///< null: /v1 and the page are not served; must outlive the server
  const AdminToken* token = nullptr;     ///< null: names of pods are for everybody; must outlive the server
};

/// One listening socket and the threads that serve it.
class HttpServer {
 public:
  /// POST /filter, /prioritize, /bind and /preempt. Accepts connections once this returns.
  static Result<std::unique_ptr<HttpServer>> start_scheduler(Service& service, const Endpoint& at,
                                                             const ServerOptions& options);
  /// GET /healthz, /readyz and /metrics; with a view /v1/cluster, /v1/nodes/NAME, /v1/explain and the page at /.
  static Result<std::unique_ptr<HttpServer>> start_admin(Service& service, const Endpoint& at,
                                                         const AdminOptions& options = {});

  /// Stops without waiting for requests under way.
  ~HttpServer();

  /// `ADDR:PORT` as bound.
  std::string address() const;
  /// Takes no more requests, lets those that have begun end within `grace`, closes every connection. `cut` is called
  /// after the grace, to end what requests still wait for. Safe to call twice.
  void stop(Nanoseconds grace, const std::function<void()>& cut = {});

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace mortise::extender
