#include "scheduler/extender/live_cluster.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "scheduler/kube/objects/decode.h"

namespace mortise::extender {
namespace {

constexpr std::chrono::microseconds kLetIn{50};

Result<topology::NodeTopologyReport> decode_report(const nlohmann::json& object) {
  return topology::decode_node_topology(object, "");
}

/// What to do with the objects of one type; each call under the mutex.
template <class T>
struct Calls {
  std::function<void(std::vector<T>& objects, const std::string& version, const StateFeed::Pause&)> replace;
  std::function<void(T)> upsert;
  std::function<void(const kube::ObjectName&)> remove;
  std::function<void(const kube::ObjectName&, const std::string& why)> bad;
  std::function<void()> list_starts = {};  ///< may be empty
};

template <class T>
class LockedFeed final : public kube::TypedFeed<T> {
 public:
  LockedFeed(typename kube::TypedFeed<T>::Decode decoder, std::mutex& mutex, Calls<T> calls)
      : kube::TypedFeed<T>(decoder), mutex_(mutex), calls_(std::move(calls)) {}

  void on_list_started() override {
    if (!calls_.list_starts) return;
    const std::lock_guard lock(mutex_);
    calls_.list_starts();
  }
  void on_replace(std::vector<T> objects, const std::string& version) override {
    std::unique_lock lock(mutex_);
    calls_.replace(objects, version, [&] {
      lock.unlock();
      // Taken again at once, the mutex would never be seen free by a thread that sleeps for it.
      std::this_thread::sleep_for(kLetIn);
      lock.lock();
    });
  }
  void on_upsert(T object) override {
    const std::lock_guard lock(mutex_);
    calls_.upsert(std::move(object));
  }
  void on_delete(const kube::ObjectName& name) override {
    const std::lock_guard lock(mutex_);
    calls_.remove(name);
  }
  void on_bad_object(const kube::ObjectName& name, const std::string& why) override {
    const std::lock_guard lock(mutex_);
    calls_.bad(name, why);
  }
  void on_progress(const std::string&) override {}

 private:
  std::mutex& mutex_;
  Calls<T> calls_;
};

using kube::ObjectName;
using topology::NodeTopologyReport;

Calls<kube::Node> node_calls(StateFeed& feed) {
  return {[&](std::vector<kube::Node>& nodes, const std::string& version, const StateFeed::Pause& pause) {
            feed.replace_nodes(std::move(nodes), pause);
            feed.nodes_known_up_to(version);
          },
          [&](kube::Node node) {
            const std::string version = node.resource_version;
            feed.upsert_node(std::move(node));
            feed.nodes_known_up_to(version);
          },
          [&](const ObjectName& name) {
            feed.delete_node(name.name);
            feed.nodes_known_up_to(name.resource_version);
          },
          [&](const ObjectName& name, const std::string& why) { feed.bad_node(name.name, why); },
          [&] { feed.nodes_list_starts(); }};
}

Calls<kube::Pod> pod_calls(StateFeed& feed) {
  return {[&](const std::vector<kube::Pod>& pods, const std::string& version, const StateFeed::Pause& pause) {
            feed.replace_pods(pods, pause);
            feed.pods_known_up_to(version);
          },
          [&](const kube::Pod& pod) {
            feed.upsert_pod(pod);
            feed.pods_known_up_to(pod.resource_version);
          },
          [&](const ObjectName& name) {
            feed.delete_pod(name.uid);
            feed.pods_known_up_to(name.resource_version);
          },
          [&](const ObjectName& name, const std::string& why) { feed.bad_pod(name.uid, name.key(), why); },
          [&] { feed.pods_list_starts(); }};
}

Calls<NodeTopologyReport> report_calls(StateFeed& feed) {
  return {[&](std::vector<NodeTopologyReport>& reports, const std::string&, const StateFeed::Pause& pause) {
            feed.replace_reports(std::move(reports), pause);
          },
          [&](NodeTopologyReport report) { feed.upsert_report(std::move(report)); },
          [&](const ObjectName& name) { feed.delete_report(name.name); },
          [&](const ObjectName& name, const std::string& why) { feed.bad_report(name.name, why); }};
}

}  // namespace

LiveCluster::LiveCluster(kube::ApiClient& client, StateFeed& feed, std::mutex& mutex, const Clock& clock,
                         kube::Waiter& waiter, std::uint64_t seed)
    : client_(client), clock_(clock), waiter_(waiter), seed_(seed) {
  watch("topology reports", std::make_unique<LockedFeed<NodeTopologyReport>>(&decode_report, mutex, report_calls(feed)),
        {.path = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies", .optional = true});
  watch("nodes", std::make_unique<LockedFeed<kube::Node>>(&kube::decode_node, mutex, node_calls(feed)),
        {.path = "/api/v1/nodes"});
  watch("pods", std::make_unique<LockedFeed<kube::Pod>>(&kube::decode_pod, mutex, pod_calls(feed)),
        {.path = "/api/v1/pods"});
}

LiveCluster::~LiveCluster() {
  stop();
}

void LiveCluster::watch(std::string name, std::unique_ptr<kube::ObjectFeed> feed, kube::ReflectorOptions options) {
  auto part = std::make_unique<Part>();
  part->name = std::move(name);
  part->feed = std::move(feed);
  part->reflector = std::make_unique<kube::Reflector>(client_, *part->feed, std::move(options), clock_, waiter_,
                                                      seed_ + parts_.size());
  part->thread =
      std::jthread([reflector = part->reflector.get()](const std::stop_token& stop) { reflector->run(stop); });
  parts_.push_back(std::move(part));
}

void LiveCluster::stop() {
  for (const auto& part : parts_) part->thread.request_stop();
  for (const auto& part : parts_) {
    if (part->thread.joinable()) part->thread.join();
  }
}

std::string LiveCluster::waiting_for() const {
  std::string text;
  for (const auto& part : parts_) {
    const kube::ReflectorStatus status = part->reflector->status();
    if (status.synced) continue;
    text += (text.empty() ? "" : "; ") + part->name + " are not listed yet";
    if (!status.last_error.empty()) text += " (" + status.last_error + ")";
  }
  return text;
}

std::vector<LiveCluster::Watched> LiveCluster::status() const {
  std::vector<Watched> all;
  for (const auto& part : parts_) all.push_back({part->name, part->reflector->status()});
  return all;
}

}  // namespace mortise::extender
