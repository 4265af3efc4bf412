#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/extender/asked_pods.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/extender/evictions.h"
#include "scheduler/extender/gang_feed.h"
#include "scheduler/extender/observer.h"
#include "scheduler/kube/objects/node.h"
#include "scheduler/kube/objects/node_topology.h"
#include "scheduler/kube/objects/notes.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/topology/sources/lazy_catalogue.h"
#include "scheduler/topology/sources/nrt_json.h"

namespace mortise::extender {

/// Keeps the cluster state as the objects of the API server have it. What cannot be understood is noted, and blocks at
/// most what the pod or node itself has. Not synchronised.
class StateFeed {
 public:
  /// All must outlive it. `seed` draws the nodes' ranks.
  StateFeed(placement::ClusterState& cluster, Bookings& bookings, topology::LazyCatalogue& catalogue,
            std::uint64_t seed)
      : cluster_(cluster), bookings_(bookings), observer_(bookings), topologies_(catalogue, notes_), seed_(seed) {
    cluster_.expect_topologies();
  }

  /// Called while a list is taken over, after every kSlice objects or so, when all is consistent: of a list of tens of
  /// thousands, each with what it changes, nobody should have to wait for the end. What happens in it, such as filter
  /// or bind, is as good as what happens before or after the whole list.
  using Pause = std::function<void()>;
  static constexpr std::size_t kSlice = 64;

  /// Tells these of pods and nodes, too. All must outlive it.
  void feed_gangs(Gangs& gangs, GangFeed& feed, placement::Domains& domains) {
    gangs_ = &gangs;
    gang_feed_ = &feed;
    domains_ = &domains;
  }

  /// Tells these of pods that are being deleted or gone. They must outlive it.
  void feed_evictions(Evictions& evictions) { evictions_ = &evictions; }

  /// The next replace_nodes shows what is so now, or later.
  void nodes_list_starts() { bad_nodes_.clear(); }
  void replace_nodes(std::vector<kube::Node> nodes, const Pause& pause = {});
  void upsert_node(kube::Node node);
  void delete_node(std::string_view name);

  void replace_reports(std::vector<topology::NodeTopologyReport> reports, const Pause& pause = {});
  void upsert_report(topology::NodeTopologyReport report);
  void delete_report(std::string_view name);

  /// The next replace_pods shows what is so now, or later: pods that are bound meanwhile may be missing in it.
  void pods_list_starts() {
    list_ = bookings_.begin_list();
    if (gang_feed_ != nullptr) gang_feed_->list_starts();
    bad_pods_.clear();
  }
  void replace_pods(const std::vector<kube::Pod>& pods, const Pause& pause = {});
  void upsert_pod(const kube::Pod& pod);
  void delete_pod(std::string_view uid);

  /// Which pod is on which GPU, as the DCGM exporter sees it; or why nobody could tell.
  void take_samples(const Result<std::vector<kube::GpuSample>>& samples);

  /// Objects that are not even of the right form, be it in a list: nodes and pods stay as they were, and a report
  /// tells nothing any more.
  void bad_node(std::string_view name, std::string_view why);
  void bad_pod(std::string_view uid, std::string_view name, std::string_view why);
  void bad_report(std::string_view name, std::string_view why);

  /// Resource versions up to which nodes and pods are as the API server has, or had, them.
  void nodes_known_up_to(std::string version) { nodes_version_ = std::move(version); }
  void pods_known_up_to(std::string version) { pods_version_ = std::move(version); }
  const std::string& nodes_version() const { return nodes_version_; }
  const std::string& pods_version() const { return pods_version_; }

  /// Something about a pod that is not as it should be.
  void note(std::string_view what, std::string_view pod) { notes_.add_one_of(what, pod); }

  /// A pod that waits for a node, as last seen; null: none such.
  const WaitingPod* waiting(std::string_view uid) const;

  /// What was not understood so far, one line each.
  std::vector<std::string> notes() const { return notes_.lines(); }
  /// What came up since the last call.
  std::vector<std::string> take_news() { return notes_.take_news(); }

 private:
  void settle_node(const kube::Node& node);
  void place_in_domains(const kube::Node& node);
  void forget_pod(std::string_view uid);
  void take_bound(const kube::Pod& pod, const placement::PodRequest& request);
  void look_at_report(std::string_view node);
  void drop_unlisted(const std::vector<kube::Pod>& pods, const Pause& pause);

  placement::ClusterState& cluster_;
  Bookings& bookings_;
  Observer observer_;
  Gangs* gangs_ = nullptr;
  GangFeed* gang_feed_ = nullptr;
  placement::Domains* domains_ = nullptr;
  Evictions* evictions_ = nullptr;
  kube::Notes notes_;
  kube::NodeTopologies topologies_;
  std::uint64_t seed_;
  std::map<std::string, kube::Node, std::less<>> nodes_;
  std::map<std::string, topology::NodeTopologyReport, std::less<>> reports_;
  std::map<std::string, WaitingPod, std::less<>> waiting_;  // by UID
  std::optional<std::uint64_t> list_;                       // that is on its way; of Bookings::begin_list()
  std::set<std::string, std::less<>> bad_nodes_;  // by name: those of the list that is on its way, among others
  std::set<std::string, std::less<>> bad_pods_;   // likewise by UID
  std::string nodes_version_;
  std::string pods_version_;
};

}  // namespace mortise::extender
