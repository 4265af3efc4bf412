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

/// An object in a list of a built-in kind does not say which kind it is of.
class KindFeed final : public kube::ObjectFeed {
 public:
  KindFeed(std::unique_ptr<kube::ObjectFeed> to, std::string api_version, std::string kind)
      : to_(std::move(to)), api_version_(std::move(api_version)), kind_(std::move(kind)) {}

  void list_started() override { to_->list_started(); }
  void listed(const ObjectName& name, const nlohmann::json& object) override {
    nlohmann::json whole = object;
    whole["apiVersion"] = api_version_;
    whole["kind"] = kind_;
    to_->listed(name, whole);
  }
  void list_completed(const std::string& resource_version) override { to_->list_completed(resource_version); }
  void changed(const ObjectName& name, const nlohmann::json& object) override { to_->changed(name, object); }
  void deleted(const ObjectName& name, const nlohmann::json& object) override { to_->deleted(name, object); }
  void progressed(const std::string& resource_version) override { to_->progressed(resource_version); }

 private:
  std::unique_ptr<kube::ObjectFeed> to_;
  std::string api_version_;
  std::string kind_;
};

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

Calls<kube::GroupObject> group_calls(GangFeed& gangs, const kube::GroupKindInfo& info) {
  const std::string_view group = info.api_group;
  const kube::GroupKind kind = info.kind;
  return {[&gangs, group, kind](const std::vector<kube::GroupObject>& objects, const std::string&,
                                const StateFeed::Pause&) { gangs.replace(kind, group, objects); },
          [&gangs, group](const kube::GroupObject& object) { gangs.put(group, object); },
          [&gangs, group, kind](const ObjectName& name) { gangs.remove(group, kind, name.ns, name.name); },
          [&gangs, group, kind](const ObjectName& name, const std::string&) {
            gangs.remove(group, kind, name.ns, name.name);
          }};
}

constexpr Nanoseconds kLookForGroups = 60 * kSecond;

}  // namespace

LiveCluster::LiveCluster(kube::ApiClient& client, StateFeed& feed, std::mutex& mutex, const Clock& clock,
                         kube::Waiter& waiter, std::uint64_t seed, GangFeed* gangs)
    : client_(client), clock_(clock), waiter_(waiter), seed_(seed) {
  if (gangs != nullptr) {
    groups_unknown_ = "which group objects there are is not known yet";
    discovers_ =
        std::jthread([this, gangs, &mutex](const std::stop_token& stop) { watch_groups(*gangs, mutex, stop); });
  }
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
  const std::lock_guard lock(parts_mutex_);
  part->reflector = std::make_unique<kube::Reflector>(client_, *part->feed, std::move(options), clock_, waiter_,
                                                      seed_ + parts_.size());
  part->thread =
      std::jthread([reflector = part->reflector.get()](const std::stop_token& stop) { reflector->run(stop); });
  parts_.push_back(std::move(part));
}

/// What is installed later is found later; what has been found stays watched, be it removed.
void LiveCluster::watch_groups(GangFeed& gangs, std::mutex& mutex, const std::stop_token& stop) {
  GroupDiscovery discovery(client_);
  while (!stop.stop_requested()) {
    std::string error;
    for (const ServedGroupKind& served : discovery.look(stop, error)) {
      const std::string name = std::string(served.info.resource) + "." + std::string(served.info.api_group);
      auto feed = std::make_unique<LockedFeed<kube::GroupObject>>(&kube::decode_group_object, mutex,
                                                                  group_calls(gangs, served.info));
      watch(name, std::make_unique<KindFeed>(std::move(feed), served.api_version, std::string(served.info.name)),
            {.path = "/apis/" + served.api_version + "/" + std::string(served.info.resource), .optional = true});
    }
    {
      const std::lock_guard lock(parts_mutex_);
      groups_unknown_ = error.empty() || groups_unknown_.empty() ? "" : "group objects: " + error;
    }
    waiter_.wait(error.empty() ? kLookForGroups : kSecond, stop);
  }
}

void LiveCluster::stop() {
  discovers_.request_stop();
  if (discovers_.joinable()) discovers_.join();  // after which there are no more parts
  for (const auto& part : parts_) part->thread.request_stop();
  for (const auto& part : parts_) {
    if (part->thread.joinable()) part->thread.join();
  }
}

std::string LiveCluster::waiting_for() const {
  const std::lock_guard lock(parts_mutex_);
  std::string text = groups_unknown_;
  for (const auto& part : parts_) {
    const kube::ReflectorStatus status = part->reflector->status();
    if (status.synced) continue;
    text += (text.empty() ? "" : "; ") + part->name + " are not listed yet";
    if (!status.last_error.empty()) text += " (" + status.last_error + ")";
  }
  return text;
}

std::vector<LiveCluster::Watched> LiveCluster::status() const {
  const std::lock_guard lock(parts_mutex_);
  std::vector<Watched> all;
  for (const auto& part : parts_) all.push_back({part->name, part->reflector->status()});
  return all;
}

}  // namespace mortise::extender
