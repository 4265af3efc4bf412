#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "scheduler/base/clock.h"
#include "scheduler/kube/client/lease.h"

namespace mortise::extender {

/// Where the lease is kept.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;
  virtual kube::Answer<kube::Lease> read() = 0;
  virtual kube::Answer<kube::Lease> create(const kube::Lease& lease) = 0;
  virtual kube::Answer<kube::Lease> update(const kube::Lease& lease) = 0;
};

class ApiLeaseStore final : public LeaseStore {
 public:
  /// A server that is gone without a word must not cost the lease: a holder has time to ask again on a new connection.
  static constexpr Nanoseconds kTimeout = 3 * kSecond;

  ApiLeaseStore(kube::ApiClient& client, std::string ns, std::string name, Nanoseconds timeout = kTimeout)
      : client_(client), ns_(std::move(ns)), name_(std::move(name)), timeout_(timeout) {}
  kube::Answer<kube::Lease> read() override;
  kube::Answer<kube::Lease> create(const kube::Lease& lease) override;
  kube::Answer<kube::Lease> update(const kube::Lease& lease) override;

 private:
  kube::ApiClient& client_;
  std::string ns_;
  std::string name_;
  Nanoseconds timeout_;
};

/// Which of several replicas answers: the one that holds a coordination.k8s.io Lease. It leads until kLeadsFor after it
/// *sent* its last renewal, by its own monotonic clock, whatever it hears since; another takes the lease no sooner than
/// kLeaseTime after it *saw* that renewal, which was later. So at no moment do two lead, if their clocks run alike.
///
/// Leadership follows the kube-scheduler that asks: a replica that is asked and does not lead writes its identity into
/// an annotation of the lease. A holder that finds one there and is not asked itself gives the lease back, and the
/// others leave it to the replica that asked for it.
class Leadership {
 public:
  static constexpr Nanoseconds kLeaseTime = 15 * kSecond;
  static constexpr Nanoseconds kLeadsFor = 10 * kSecond;
  static constexpr Nanoseconds kEvery = 2 * kSecond;        ///< between two steps
  static constexpr Nanoseconds kAskedLately = 5 * kSecond;  ///< after a verb, for so long a replica counts as asked
  static constexpr Nanoseconds kAskEvery = 4 * kSecond;     ///< between two requests for the lease, at least
  static constexpr Nanoseconds kLeftToAsker = 6 * kSecond;  ///< others leave it a lease that was given back
  static constexpr const char* kAskedByAnnotation = "mortise.dev/asked-by";

  /// Whether a Binding is on its way; the lease is not given to another while it is.
  using Busy = std::function<bool()>;

  /// All must outlive it. `identity` is this replica's, different from all others'.
  Leadership(LeaseStore& store, std::string identity, const Clock& clock, Busy busy = {})
      : store_(store), identity_(std::move(identity)), clock_(clock), busy_(std::move(busy)) {}

  /// Renews the lease, takes it when nobody holds it, asks for it or gives it to who asked for it. One thread only; may
  /// take as long as the store does.
  void step(std::chrono::system_clock::time_point now);
  /// Gives the lease back, so that another need not wait.
  void resign(std::chrono::system_clock::time_point now);

  /// A verb has come in, whatever was answered. Any thread may call it.
  void asked() { asked_at_ = clock_.now(); }

  /// Any thread may ask.
  bool leads() const { return time_left() > 0; }
  /// For how long it leads if it renews the lease no more; 0 or less: it does not.
  Nanoseconds time_left() const { return leads_until_ - clock_.now(); }
  /// Why it does not lead, as one line; empty: it does.
  std::string why_not() const;

 private:
  void note(std::string text);
  kube::Outcome attempt(std::chrono::system_clock::time_point now);
  kube::Outcome take(kube::Lease lease, std::chrono::system_clock::time_point now);
  kube::Outcome hand_over(kube::Lease lease, std::chrono::system_clock::time_point now);
  kube::Outcome renewed(const kube::Answer<kube::Lease>& answer, Nanoseconds sent);
  void ask_for(kube::Lease lease);
  std::string other_asker(const kube::Lease& lease) const;
  bool asked_lately() const { return clock_.now() - asked_at_ < kAskedLately; }

  LeaseStore& store_;
  const std::string identity_;
  const Clock& clock_;
  const Busy busy_;
  std::atomic<Nanoseconds> leads_until_ = 0;
  std::atomic<Nanoseconds> asked_at_ = -kAskedLately;
  Nanoseconds asked_for_at_ = -kAskEvery;
  std::string left_to_;       // who asked for the lease that is being given back; empty: it is not
  std::string seen_renewal_;  // the other holder's last
  Nanoseconds seen_at_ = 0;
  mutable std::mutex mutex_;
  std::string why_not_ = "the lease has not been read yet";  // guarded by mutex_
};

}  // namespace mortise::extender
