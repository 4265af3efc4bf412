#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

#include "scheduler/base/clock.h"
#include "scheduler/base/rng.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/extender/plan_store.h"
#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::extender {

/// Pod annotation: what has become of its gang since kube-scheduler asked about it. kube-scheduler asks again about a
/// pod that it could not place when the pod changes, and learns of nothing else that happens to a gang.
inline constexpr std::string_view kGangStateAnnotation = "mortise.dev/gang-state";

/// Wakes members of gangs: a patch of one annotation each, no more than kPerSecond of them in any second. Takes away
/// the ConfigMaps of plans that are of no use any more.
class GangWaker {
 public:
  static constexpr std::size_t kPerSecond = 50;

  /// `mutex` guards the gangs; `why_not` tells why this replica must not write. All must outlive it.
  GangWaker(Gangs& gangs, std::mutex& mutex, kube::ApiClient& client, PlanWriter& plans, const Clock& clock,
            kube::Waiter& waiter, std::function<std::string()> why_not, std::uint64_t seed)
      : gangs_(gangs),
        mutex_(mutex),
        client_(client),
        plans_(plans),
        clock_(clock),
        waiter_(waiter),
        why_not_(std::move(why_not)),
        rng_(seed) {}

  /// Works until stop is asked for.
  void run(const std::stop_token& stop);
  /// Members woken, and patches that failed.
  std::uint64_t woken() const { return woken_; }
  std::uint64_t failed() const { return failed_; }

 private:
  Nanoseconds until_next();
  void send(const GangKick& kick, const std::stop_token& stop);

  Gangs& gangs_;
  std::mutex& mutex_;
  kube::ApiClient& client_;
  PlanWriter& plans_;
  const Clock& clock_;
  kube::Waiter& waiter_;
  std::function<std::string()> why_not_;
  Rng rng_;
  std::deque<Nanoseconds> sent_;  // when; the last kPerSecond at most
  std::atomic<std::uint64_t> woken_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace mortise::extender
