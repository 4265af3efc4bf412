#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/group_watch.h"
#include "scheduler/extender/state_feed.h"
#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/client/reflector.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::extender {

/// Watches nodes, pods, topology reports and whatever group objects an API server has, and keeps the cluster state and
/// the gangs like them. One thread for each.
class LiveCluster {
 public:
  /// `mutex` guards the feeds and all below them. `gangs` may be null: then no group objects are watched. All must
  /// outlive it.
  LiveCluster(kube::ApiClient& client, StateFeed& feed, std::mutex& mutex, const Clock& clock, kube::Waiter& waiter,
              std::uint64_t seed, GangFeed* gangs = nullptr);
  ~LiveCluster();

  /// What has never been listed yet, and why, as one line; empty: everything has.
  std::string waiting_for() const;
  struct Watched {
    std::string name;
    kube::ReflectorStatus status;
  };
  std::vector<Watched> status() const;

  /// Ends the watches; called by the destructor, too.
  void stop();

 private:
  struct Part {
    std::string name;
    std::unique_ptr<kube::ObjectFeed> feed;
    std::unique_ptr<kube::Reflector> reflector;
    std::jthread thread;
  };
  void watch_groups(GangFeed& gangs, std::mutex& mutex, const std::stop_token& stop);
  void watch(std::string name, std::unique_ptr<kube::ObjectFeed> feed, kube::ReflectorOptions options);

  kube::ApiClient& client_;
  const Clock& clock_;
  kube::Waiter& waiter_;
  std::uint64_t seed_;
  mutable std::mutex parts_mutex_;
  std::vector<std::unique_ptr<Part>> parts_;  // guarded by parts_mutex_
  std::string groups_unknown_;                // why it is not known which group objects there are; likewise
  std::jthread discovers_;
};

}  // namespace mortise::extender
