#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/extender/listener.h"
#include "scheduler/extender/service.h"

namespace mortise::extender {

class Connection;
class Gate;

/// What a handler sees of a request.
struct WebRequest {
  std::string path;                          ///< decoded, without the query
  std::map<std::string, std::string> query;  ///< decoded; of repeated names the first
  std::string authorization;                 ///< the header of that name
  std::string body;
};

/// One path and the one method it has.
struct Route {
  std::string method;
  std::string path;       ///< ending with `/`: every path that begins with it, too
  const char* type = "";  ///< of the answer
  std::function<Reply(WebRequest request)> handle;
  std::function<Reply(const std::string& why)>
      refuse{};          ///< the answer to a body that is not taken, or to a fault of ours
  Gate* gate = nullptr;  ///< only so many of these at once; null: any number
  bool always = false;   ///< served on connections that are turned away, too
};

struct RouterOptions {
  std::size_t max_request_bytes = 0;
  Nanoseconds gate_patience = 0;          ///< how long a request waits at a gate before it is answered 503
  std::function<void()> count_refused{};  ///< of requests for which the gate did not open
  std::function<bool()> stopping{};       ///< answers then say that the connection ends
  int stop_fd = -1;                       ///< readable then
};

/// Reads the requests of connections, finds their routes and writes the answers.
class Router {
 public:
  Router(RouterOptions options, std::vector<Route> routes);
  ~Router();

  /// Until the connection ends. Thread-safe.
  void serve(Connection& connection, Listener::Admission admission);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mortise::extender
