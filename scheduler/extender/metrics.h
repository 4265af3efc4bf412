#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/base/units.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/placement/cluster_state.h"

namespace mortise::extender {

enum class Verb { kFilter, kPrioritize, kBind, kPreempt };
inline constexpr int kVerbCount = 4;

/// Which of our two listening sockets.
enum class ListenerSide { kScheduler, kAdmin };
/// Why a client was answered 503.
enum class Shortage { kConnections, kVerbs };

/// Prometheus metrics of the extender. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void count_request(Verb verb, bool ok, Nanoseconds took);
  void count_filter(const FilterAnswer& answer);
  void count_connections(ListenerSide side, int by);
  void count_unavailable(ListenerSide side, Shortage cause);
  /// Adds the series of TLS. `expires` is in Unix seconds.
  void set_tls(bool reloaded, std::int64_t expires);
  /// `fragmentation` is in milli-GPU.
  void set_cluster(const placement::ClusterTotals& totals, double fragmentation);
  /// The text exposition format, version 0.0.4.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mortise::extender
