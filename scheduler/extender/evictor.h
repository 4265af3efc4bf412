#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/evictions.h"
#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::extender {

/// Evicts what is due, one pod after another, no more than kPerSecond.
class Evictor {
 public:
  static constexpr std::int64_t kPerSecond = 20;

  /// `mutex` guards the evictions; `why_not` tells why this replica must not write. All must outlive it.
  Evictor(Evictions& evictions, std::mutex& mutex, kube::ApiClient& client, kube::Waiter& waiter,
          std::function<std::string()> why_not)
      : evictions_(evictions), mutex_(mutex), client_(client), waiter_(waiter), why_not_(std::move(why_not)) {}

  /// Works until stop is asked for.
  void run(const std::stop_token& stop);
  /// Sends what is due; false: nothing is.
  bool step(const std::stop_token& stop);

  std::uint64_t evicted() const { return evicted_; }
  std::uint64_t failed() const { return failed_; }

  /// What became of an eviction.
  struct News {
    EvictionOrder order;
    std::string error;  ///< empty: the pod is evicted
  };
  /// Since the last call. Any thread may ask.
  std::vector<News> take_news();

 private:
  void send(const EvictionOrder& order, const std::stop_token& stop);

  Evictions& evictions_;
  std::mutex& mutex_;
  kube::ApiClient& client_;
  kube::Waiter& waiter_;
  std::function<std::string()> why_not_;
  std::mutex news_mutex_;
  std::vector<News> news_;
  std::atomic<std::uint64_t> evicted_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace mortise::extender
