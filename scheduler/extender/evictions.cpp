#include "scheduler/extender/evictions.h"

#include <utility>

namespace mortise::extender {

std::optional<EvictionOrder> Evictions::order_for(const std::string& uid, const std::string& preemptor) const {
  const Booking* booking = bookings_.find(uid);
  if (booking == nullptr || booking->leaving) return std::nullopt;
  return EvictionOrder{booking->request.ns, booking->request.name, uid, preemptor};
}

void Evictions::forget(const std::string& key) {
  const auto found = expected_.find(key);
  if (found == expected_.end()) return;
  for (const std::string& uid : found->second.first) {
    const auto keys = keys_of_.find(uid);
    keys->second.erase(key);
    if (keys->second.empty()) keys_of_.erase(keys);
  }
  expected_.erase(found);
}

void Evictions::drop_old() {
  for (; !ends_.empty() && ends_.front().first <= clock_.now(); ends_.pop_front()) {
    const auto found = expected_.find(ends_.front().second);
    if (found != expected_.end() && found->second.until == ends_.front().first) forget(ends_.front().second);
  }
}

void Evictions::expect(const std::string& key, const std::string& preemptor, const std::vector<std::string>& first,
                       const std::vector<std::string>& rest) {
  drop_old();
  forget(key);
  Expected expected{{first.begin(), first.end()}, {}, {}, clock_.now() + kWait};
  for (const std::string& uid : first) {
    keys_of_[uid].insert(key);
    if (auto order = order_for(uid, preemptor)) expected.later.push_back(*std::move(order));
  }
  for (const std::string& uid : rest) {
    if (auto order = order_for(uid, preemptor)) expected.now.push_back(*std::move(order));
  }
  ends_.emplace_back(expected.until, key);
  expected_.emplace(key, std::move(expected));
}

void Evictions::begun(std::string_view uid) {
  drop_old();
  const auto keys = keys_of_.find(uid);
  if (keys == keys_of_.end()) return;
  const Nanoseconds now = clock_.now();
  const auto put = [&](const std::vector<EvictionOrder>& orders, Nanoseconds at) {
    for (EvictionOrder order : orders) {
      order.given_up = now + kGiveUp;
      due_.emplace(at, std::move(order));
    }
  };
  const std::set<std::string> begun = keys->second;
  for (const std::string& key : begun) {
    const Expected& expected = expected_.find(key)->second;
    put(expected.now, now);
    put(expected.later, now + kLeave);
    forget(key);
  }
}

std::optional<EvictionOrder> Evictions::next() {
  while (!due_.empty() && due_.begin()->first <= clock_.now()) {
    EvictionOrder order = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    const Booking* booking = bookings_.find(order.uid);
    const bool stays = booking != nullptr && !booking->leaving;
    if (stays && clock_.now() < order.given_up) return order;
  }
  return std::nullopt;
}

void Evictions::clear() {
  expected_.clear();
  keys_of_.clear();
  ends_.clear();
  due_.clear();
}

void Evictions::try_later(const EvictionOrder& order, Nanoseconds wait) {
  const Nanoseconds at = clock_.now() + wait;
  if (at < order.given_up) due_.emplace(at, order);
}

}  // namespace mortise::extender
