#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/client/bind_pod.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::extender {

struct BindResult {
  enum class State {
    kBound,     ///< the pod is on the node, now or already
    kNotBound,  ///< it is not, and no request of ours can still change that
    kUnknown,   ///< nobody could be asked; the place must be kept until something tells
  };
  State state = State::kUnknown;
  std::string error;  ///< one line; empty when bound
};

/// Makes a planned place real.
class Binder {
 public:
  virtual ~Binder() = default;
  /// May take long; several threads at once.
  virtual BindResult bind(const kube::Binding& binding) = 0;
};

/// By a Binding at the API server. An answer that leaves open what happened is settled by reading the pod.
class ApiBinder final : public Binder {
 public:
  static constexpr int kMaxAttempts = 3;

  /// Asked before each Binding is sent; empty: it may be.
  using WhyNot = std::function<std::string()>;

  /// Asked after that: for how long from now. A Binding that has not left by then does not leave; empty: the client's
  /// own limit holds.
  using TimeLeft = std::function<Nanoseconds()>;

  /// All must outlive it.
  ApiBinder(kube::ApiClient& client, kube::Waiter& waiter, std::stop_token stop, WhyNot why_not = {},
            TimeLeft time_left = {})
      : client_(client),
        waiter_(waiter),
        stop_(std::move(stop)),
        why_not_(std::move(why_not)),
        time_left_(std::move(time_left)) {}
  BindResult bind(const kube::Binding& binding) override;
  /// Whether a Binding is on its way, or about to be sent. Any thread may ask.
  bool busy() const { return running_ > 0; }

 private:
  BindResult send(const kube::Binding& binding);

  kube::ApiClient& client_;
  kube::Waiter& waiter_;
  std::stop_token stop_;
  WhyNot why_not_;
  TimeLeft time_left_;
  std::atomic<int> running_ = 0;
};

}  // namespace mortise::extender
