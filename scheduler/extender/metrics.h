#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/extender/cluster_figures.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/placement/cluster_state.h"

namespace mortise::extender {

enum class Verb { kFilter, kPrioritize, kBind, kPreempt };
inline constexpr int kVerbCount = 4;

/// Which of our two listening sockets.
enum class ListenerSide { kScheduler, kAdmin };
/// Why a client was answered 503.
enum class Shortage { kConnections, kVerbs };

/// How a watch of the API server is doing; the counts are since the start.
struct WatchFigures {
  std::string resource;
  Nanoseconds silent = 0;  ///< since the server last sent anything about it
  std::uint64_t events = 0;
  std::uint64_t lists = 0;
  std::uint64_t troubles = 0;  ///< failures, expired versions, gaps
};

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
  void set_cluster(const placement::ClusterTotals& totals, double fragmentation, std::size_t reservations);
  /// What set_cluster does not cover.
  void set_figures(const ClusterFigures& figures);
  /// Adds the series of what is watched.
  void set_watches(const std::vector<WatchFigures>& watches);
  /// Members of gangs that were woken, and failures of that.
  void set_woken(const std::pair<std::uint64_t, std::uint64_t>& woken);
  /// Pods that were evicted because the rest of their gang was, and attempts that failed.
  void set_evicted(const std::pair<std::uint64_t, std::uint64_t>& evicted);
  /// Plans of gangs that were written to a ConfigMap, and failures of that.
  void set_plans_stored(const std::pair<std::uint64_t, std::uint64_t>& stored);
  /// The text exposition format, version 0.0.4.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mortise::extender
