#include "scheduler/extender/evictions.h"

#include <utility>

namespace mortise::extender {

std::optional<EvictionOrder> Evictions::order_for(const std::string& uid, const std::string& preemptor) const {
  const Booking* booking = bookings_.find(uid);
  if (booking == nullptr || booking->leaving) return std::nullopt;
  return EvictionOrder{booking->request.ns, booking->request.name, uid, preemptor};
}

void Evictions::expect(const std::string& key, const std::string& preemptor, const std::vector<std::string>& first,
                       const std::vector<std::string>& rest) {
  const Nanoseconds now = clock_.now();
  std::erase_if(expected_, [&](const auto& entry) { return entry.second.until <= now; });
  Expected expected{{first.begin(), first.end()}, {}, {}, now + kWait};
  for (const std::string& uid : first) {
    if (auto order = order_for(uid, preemptor)) expected.later.push_back(*std::move(order));
  }
  for (const std::string& uid : rest) {
    if (auto order = order_for(uid, preemptor)) expected.now.push_back(*std::move(order));
  }
  expected_.insert_or_assign(key, std::move(expected));
}

void Evictions::leaves(std::string_view uid) {
  const Nanoseconds now = clock_.now();
  const auto put = [&](const std::vector<EvictionOrder>& orders, Nanoseconds at) {
    for (EvictionOrder order : orders) {
      order.given_up = now + kGiveUp;
      due_.emplace(at, std::move(order));
    }
  };
  std::erase_if(expected_, [&](const auto& entry) {
    const Expected& expected = entry.second;
    if (expected.until <= now) return true;
    if (!expected.first.contains(uid)) return false;
    put(expected.now, now);
    put(expected.later, now + kLeave);
    return true;
  });
}

std::optional<EvictionOrder> Evictions::next() {
  while (!due_.empty() && due_.begin()->first <= clock_.now()) {
    EvictionOrder order = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    const Booking* booking = bookings_.find(order.uid);
    if (booking != nullptr && !booking->leaving) return order;
  }
  return std::nullopt;
}

void Evictions::try_later(const EvictionOrder& order, Nanoseconds wait) {
  const Nanoseconds at = clock_.now() + wait;
  if (at < order.given_up) due_.emplace(at, order);
}

}  // namespace mortise::extender
