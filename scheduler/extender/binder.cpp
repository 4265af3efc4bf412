#include "scheduler/extender/binder.h"

#include <algorithm>
#include <optional>

#include "scheduler/kube/client/read_pod.h"

namespace mortise::extender {
namespace {

using State = BindResult::State;
using kube::Outcome;

constexpr Nanoseconds kPause = 200'000'000;  // kube-scheduler waits for this call, 5 s by default
constexpr Nanoseconds kLongestPause = 1 * kSecond;

/// What the pod itself says; nothing when it is not bound, and still the same pod.
std::optional<BindResult> settle(const kube::Answer<kube::Pod>& read, const kube::Binding& binding) {
  if (read.outcome == Outcome::kNotFound) return BindResult{State::kNotBound, "the pod is gone"};
  if (!read.done()) return std::nullopt;
  const kube::Pod& pod = *read.value;
  if (pod.uid != binding.uid) return BindResult{State::kNotBound, "the pod was replaced by one with UID " + pod.uid};
  if (pod.node_name == binding.node) return BindResult{State::kBound, ""};
  if (!pod.node_name.empty()) return BindResult{State::kNotBound, "the pod is bound to node " + pod.node_name};
  return std::nullopt;
}

}  // namespace

BindResult ApiBinder::bind(const kube::Binding& binding) {
  // Counted before `why_not_` is asked: who stops leading and then finds nothing running knows that nothing will be
  // sent.
  ++running_;
  BindResult result = send(binding);
  --running_;
  return result;
}

BindResult ApiBinder::send(const kube::Binding& binding) {
  bool in_flight = false;  // a request of ours may have been carried out, or still be
  std::string last;
  for (int attempt = 0; attempt < kMaxAttempts && !stop_.stop_requested(); ++attempt) {
    if (const std::string why = why_not_ ? why_not_() : std::string(); !why.empty()) {
      return {in_flight ? State::kUnknown : State::kNotBound, "not the leader: " + why};
    }
    const auto limit = time_left_ ? std::optional(time_left_()) : std::nullopt;
    const kube::Done done = kube::bind_pod(client_, binding, {.timeout = limit, .stop = stop_});
    last = done.detail;
    switch (done.outcome) {
      case Outcome::kDone:
        return {State::kBound, ""};
      case Outcome::kNotFound:
        return {State::kNotBound, last};
      case Outcome::kRefused:
        return {in_flight ? State::kUnknown : State::kNotBound, last};
      case Outcome::kConflict:
      case Outcome::kUnknown: {
        const auto read = kube::read_pod(client_, binding.ns, binding.pod, {.timeout = {}, .stop = stop_});
        if (auto settled = settle(read, binding)) return *std::move(settled);
        // A conflict of a pod that is not bound: it is being deleted, or not let through yet.
        if (done.outcome == Outcome::kConflict && read.done()) return {State::kNotBound, last};
        in_flight = in_flight || done.outcome == Outcome::kUnknown;
        break;
      }
      case Outcome::kLater:
      case Outcome::kNotSent:
        break;
    }
    waiter_.wait(std::min(done.retry_after.value_or(kPause), kLongestPause), stop_);
  }
  return {in_flight ? State::kUnknown : State::kNotBound, last.empty() ? "the extender is stopping" : last};
}

}  // namespace mortise::extender
