#include "scheduler/kube/client/connection_pool.h"

#include <algorithm>
#include <utility>

namespace mortise::kube {

std::unique_ptr<Connection> ConnectionPool::take() {
  std::vector<Idle> closing;  // after the mutex: closing TLS writes to the network
  const std::lock_guard lock(mutex_);
  while (!idle_.empty()) {
    Idle last = std::move(idle_.back());
    idle_.pop_back();
    if (clock_.now() - last.since < max_idle_ && last.connection->reusable()) return std::move(last.connection);
    closing.push_back(std::move(last));
  }
  return nullptr;
}

void ConnectionPool::give(std::unique_ptr<Connection> connection) {
  if (!connection->reusable()) return;
  std::vector<Idle> closing;
  const std::lock_guard lock(mutex_);
  idle_.push_back({std::move(connection), clock_.now()});
  // The oldest are at the front; a burst of binds leaves many that are not needed for long.
  const auto fresh =
      std::find_if(idle_.begin(), idle_.end(), [&](const Idle& idle) { return clock_.now() - idle.since < max_idle_; });
  const auto excess =
      static_cast<std::ptrdiff_t>(idle_.size() > max_connections_ ? idle_.size() - max_connections_ : 0);
  const auto end = std::max(fresh, idle_.begin() + excess);
  closing.assign(std::make_move_iterator(idle_.begin()), std::make_move_iterator(end));
  idle_.erase(idle_.begin(), end);
}

void ConnectionPool::clear() {
  std::vector<Idle> closing;
  const std::lock_guard lock(mutex_);
  closing.swap(idle_);
}

}  // namespace mortise::kube
