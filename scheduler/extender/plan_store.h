#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "scheduler/extender/gang_record.h"
#include "scheduler/kube/client/answer.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::extender {

/// Where plans are that are too large for annotations. Any thread may call it; each call may take seconds.
class PlanStore {
 public:
  virtual ~PlanStore() = default;
  /// Done: it is there. kRefused: it will not be taken; anything else: it may be, another time.
  virtual kube::Done write(const PlanMap& plan) = 0;
  /// The text of the plan.
  virtual kube::Answer<std::string> read(const PlanMapName& name) = 0;
  virtual kube::Done remove(const PlanMapName& name) = 0;
};

/// As ConfigMaps.
class ApiPlanStore final : public PlanStore {
 public:
  static constexpr int kMaxAttempts = 2;
  static constexpr Nanoseconds kTimeout = 2 * kSecond;  ///< kube-scheduler waits for the bind, 5 s by default

  /// All must outlive it.
  ApiPlanStore(kube::ApiClient& client, kube::Waiter& waiter, std::stop_token stop)
      : client_(client), waiter_(waiter), stop_(std::move(stop)) {}
  kube::Done write(const PlanMap& plan) override;
  kube::Answer<std::string> read(const PlanMapName& name) override;
  kube::Done remove(const PlanMapName& name) override;

 private:
  kube::Done write_once(const PlanMap& plan);
  kube::CallOptions call() const { return {.timeout = kTimeout, .stop = stop_}; }

  kube::ApiClient& client_;
  kube::Waiter& waiter_;
  std::stop_token stop_;
};

/// Writes each plan once, however many Bindings need it at the same time. Thread-safe.
class PlanWriter {
 public:
  /// It must outlive the writer.
  explicit PlanWriter(PlanStore& store) : store_(store) {}

  /// Returns when the plan is stored, or when it is not going to be; who comes while it is being written waits.
  kube::Done ensure(const PlanMap& plan);
  /// The ConfigMap is of no use any more.
  kube::Done remove(const PlanMapName& name);

  std::uint64_t written() const { return written_; }
  std::uint64_t failed() const { return failed_; }

 private:
  /// That is being written.
  struct Attempt {
    std::optional<kube::Done> outcome;
  };

  PlanStore& store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<PlanMapName> stored_;                            // guarded by mutex_
  std::map<PlanMapName, std::shared_ptr<Attempt>> active_;  // likewise
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace mortise::extender
