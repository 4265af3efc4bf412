#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/state_feed.h"
#include "scheduler/kube/client/api_client.h"
#include "scheduler/kube/client/reflector.h"
#include "scheduler/kube/client/waiter.h"

namespace mortise::extender {

/// Watches nodes, pods and topology reports of an API server and keeps the cluster state like them. One thread for
/// each.
class LiveCluster {
 public:
  /// `mutex` guards the feed and all below it. All must outlive it.
  LiveCluster(kube::ApiClient& client, StateFeed& feed, std::mutex& mutex, const Clock& clock, kube::Waiter& waiter,
              std::uint64_t seed);
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
  void watch(std::string name, std::unique_ptr<kube::ObjectFeed> feed, kube::ReflectorOptions options);

  kube::ApiClient& client_;
  const Clock& clock_;
  kube::Waiter& waiter_;
  std::uint64_t seed_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace mortise::extender
