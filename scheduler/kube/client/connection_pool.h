#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/kube/client/connection.h"

namespace mortise::kube {

/// Connections that wait for their next request. Safe for use by several threads at once.
class ConnectionPool {
 public:
  /// `clock` must outlive the pool.
  ConnectionPool(std::size_t max_idle_connections, Nanoseconds max_idle, const Clock& clock)
      : max_connections_(max_idle_connections), max_idle_(max_idle), clock_(clock) {}

  /// The one used last that the server has not closed; null when there is none.
  std::unique_ptr<Connection> take();
  /// Keeps the connection, or closes it when there are enough or it cannot be used again.
  void give(std::unique_ptr<Connection> connection);
  /// Closes all: what they authenticated with is out of date, or the server has gone away.
  void clear();

 private:
  struct Idle {
    std::unique_ptr<Connection> connection;
    Nanoseconds since = 0;
  };

  const std::size_t max_connections_;
  const Nanoseconds max_idle_;
  const Clock& clock_;
  std::mutex mutex_;
  std::vector<Idle> idle_;  // guarded by mutex_; the one used last at the end
};

}  // namespace mortise::kube
