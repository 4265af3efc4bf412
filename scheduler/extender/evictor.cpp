#include "scheduler/extender/evictor.h"

#include <optional>
#include <utility>

#include "scheduler/kube/client/evict_pod.h"

namespace mortise::extender {
namespace {

constexpr Nanoseconds kLookEvery = 100'000'000;
constexpr Nanoseconds kTimeout = 3 * kSecond;
constexpr Nanoseconds kAgain = 2 * kSecond;

}  // namespace

void Evictor::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) waiter_.wait(step(stop) ? kSecond / kPerSecond : kLookEvery, stop);
}

bool Evictor::step(const std::stop_token& stop) {
  if (why_not_ && !why_not_().empty()) {
    const std::lock_guard lock(mutex_);
    evictions_.clear();
    return false;
  }
  std::optional<EvictionOrder> order;
  {
    const std::lock_guard lock(mutex_);
    order = evictions_.next();
  }
  if (order) send(*order, stop);
  return order.has_value();
}

void Evictor::send(const EvictionOrder& order, const std::stop_token& stop) {
  const kube::Done done =
      kube::evict_pod(client_, order.ns, order.name, order.uid, {.timeout = kTimeout, .stop = stop});
  if (done.outcome == kube::Outcome::kNotFound) return;
  ++(done.done() ? evicted_ : failed_);
  {
    const std::lock_guard lock(news_mutex_);
    news_.push_back({order, done.done() ? std::string() : done.detail});
  }
  if (done.done()) return;
  const std::lock_guard lock(mutex_);
  evictions_.try_later(order, done.retry_after.value_or(kAgain));
}

std::vector<Evictor::News> Evictor::take_news() {
  const std::lock_guard lock(news_mutex_);
  return std::exchange(news_, {});
}

}  // namespace mortise::extender
