#include "scheduler/extender/state_feed.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "scheduler/kube/objects/assigned_devices.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/live_node.h"
#include "scheduler/kube/objects/resources.h"
#include "scheduler/kube/objects/time_text.h"

namespace mortise::extender {
namespace {

using placement::DeviceSet;
using placement::NodeSpec;
using placement::PodRequest;

/// What a pod holds is what its containers ask for, whatever is wrong with its annotations.
Result<PodRequest> request_of_bound(const kube::Pod& pod, bool& annotations_wrong) {
  Result<PodRequest> request = kube::pod_request(pod);
  annotations_wrong = !request.ok();
  if (request.ok()) return request;
  kube::Pod bare = pod;
  bare.annotations.clear();
  return kube::pod_request(bare);
}

/// The names that are known and not among those that exist.
template <class Known, class Name>
std::vector<std::string> gone(const Known& known, const std::set<Name, std::less<>>& exist) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    if (exist.find(name) == exist.end()) names.push_back(name);
  }
  return names;
}

/// Counts what is done of a list.
class Slices {
 public:
  explicit Slices(const StateFeed::Pause& pause) : pause_(pause) {}

  void one_done() {
    if (++done_ % StateFeed::kSlice == 0 && pause_) pause_();
  }

 private:
  const StateFeed::Pause& pause_;
  std::size_t done_ = 0;
};

}  // namespace

void StateFeed::settle_node(const kube::Node& node) {
  const auto report = reports_.find(node.name);
  const NodeSpec spec =
      kube::live_node_spec(node, report == reports_.end() ? nullptr : &report->second, topologies_, notes_);
  const auto known = cluster_.find_node(spec.name);
  if (known) {
    if (const Status updated = cluster_.update_node(*known, spec); !updated) {
      notes_.add_one_of("nodes stay as they were: " + updated.message(), spec.name);
    }
    place_in_domains(node);
    look_at_report(spec.name);
    return;
  }
  const auto added = cluster_.add_node(spec, kube::seeded_rank(seed_, spec.name));
  if (!added) {
    notes_.add_one_of("nodes left out: " + added.message(), spec.name);
    return;
  }
  bookings_.node_added(spec.name);
  place_in_domains(node);
  look_at_report(spec.name);
}

void StateFeed::place_in_domains(const kube::Node& node) {
  const auto known = domains_ != nullptr ? cluster_.find_node(node.name) : std::nullopt;
  if (!known) return;
  const std::vector<placement::Label> labels(node.labels.begin(), node.labels.end());
  domains_->set_node(*known, labels);
}

/// What it says may hold only now: of another node, or of other pods.
void StateFeed::look_at_report(std::string_view node) {
  const auto report = reports_.find(node);
  if (report != reports_.end()) observer_.look_at(report->second);
}

void StateFeed::replace_nodes(std::vector<kube::Node> nodes, const Pause& pause) {
  Slices slices(pause);
  std::set<std::string, std::less<>> names = std::exchange(bad_nodes_, {});
  for (const kube::Node& node : nodes) names.insert(node.name);
  for (const std::string& name : gone(nodes_, names)) {
    delete_node(name);
    slices.one_done();
  }
  for (kube::Node& node : nodes) {
    upsert_node(std::move(node));
    slices.one_done();
  }
}

void StateFeed::upsert_node(kube::Node node) {
  const std::uint64_t before = cluster_.version();
  const auto known = nodes_.find(node.name);
  const bool same_labels = known != nodes_.end() && known->second.labels == node.labels;
  const kube::Node& kept = nodes_.insert_or_assign(node.name, std::move(node)).first->second;
  settle_node(kept);
  if (gangs_ != nullptr && (!same_labels || cluster_.version() != before)) gangs_->nodes_changed();
}

void StateFeed::delete_node(std::string_view name) {
  nodes_.erase(std::string(name));
  bad_nodes_.erase(std::string(name));
  const auto known = cluster_.find_node(name);
  if (!known) return;
  bookings_.node_leaves(name);
  if (gangs_ != nullptr) {
    gangs_->node_left(*known);
    domains_->remove_node(*known);
  }
  if (const Status removed = cluster_.remove_node(*known); !removed) {
    notes_.add_one_of("nodes that are gone but stay: " + removed.message(), name);
  }
}

void StateFeed::replace_reports(std::vector<topology::NodeTopologyReport> reports, const Pause& pause) {
  Slices slices(pause);
  std::set<std::string, std::less<>> names;
  for (const topology::NodeTopologyReport& report : reports) names.insert(report.reading.node);
  for (const std::string& name : gone(reports_, names)) {
    delete_report(name);
    slices.one_done();
  }
  for (topology::NodeTopologyReport& report : reports) {
    upsert_report(std::move(report));
    slices.one_done();
  }
}

void StateFeed::upsert_report(topology::NodeTopologyReport report) {
  const std::string name = report.reading.node;
  reports_.insert_or_assign(name, std::move(report));
  if (const auto node = nodes_.find(name); node != nodes_.end()) settle_node(node->second);
}

void StateFeed::delete_report(std::string_view name) {
  reports_.erase(std::string(name));
  if (const auto node = nodes_.find(name); node != nodes_.end()) settle_node(node->second);
}

/// What a list does not hold has ended.
void StateFeed::drop_unlisted(const std::vector<kube::Pod>& pods, const Pause& pause) {
  Slices slices(pause);
  // Pods that were created and bound while the list was on its way come by the watch that follows it.
  const bool announced = list_.has_value();
  const std::uint64_t list = std::exchange(list_, {}).value_or(std::numeric_limits<std::uint64_t>::max());
  const std::set<std::string, std::less<>> bad = std::exchange(bad_pods_, {});
  std::unordered_set<std::string_view> uids(bad.begin(), bad.end());
  uids.reserve(bad.size() + pods.size());
  for (const kube::Pod& pod : pods) {
    uids.insert(pod.uid);
    slices.one_done();
  }
  std::vector<std::string> ended;
  for (const std::string& node : bookings_.nodes_with_pods()) {
    bookings_.for_each_on(node, [&](const std::string& uid, const Booking& booking) {
      const bool expected = booking.stage == Booking::Stage::kBound && booking.lists_begun < list;
      if (expected && !uids.contains(uid)) ended.push_back(uid);
    });
    slices.one_done();
  }
  for (const auto& [uid, waiting] : waiting_) {
    if (!uids.contains(uid)) ended.push_back(uid);
  }
  for (const std::string& uid : ended) {
    delete_pod(uid);
    slices.one_done();
  }
  if (gang_feed_ != nullptr) gang_feed_->keep_only(uids, announced);
}

void StateFeed::replace_pods(const std::vector<kube::Pod>& pods, const Pause& pause) {
  drop_unlisted(pods, pause);
  Slices slices(pause);
  // Those that say which devices they hold first: the others are given what is left.
  for (const bool told : {true, false}) {
    for (const kube::Pod& pod : pods) {
      if (pod.annotations.contains(std::string(kube::kAssignedDevicesAnnotation)) != told) continue;
      upsert_pod(pod);
      slices.one_done();
    }
  }
}

void StateFeed::upsert_pod(const kube::Pod& pod) {
  if (pod.uid.empty()) return;
  if (gang_feed_ != nullptr) gang_feed_->update(pod);
  if (pod.terminal()) {
    forget_pod(pod.uid);
    return;
  }
  if (pod.node_name.empty()) {
    Result<PodRequest> request = kube::pod_request(pod);
    if (request.ok()) {
      waiting_.insert_or_assign(pod.uid, WaitingPod{*std::move(request), pod.scheduler_name});
    } else {
      waiting_.erase(pod.uid);  // filter answers it with what is wrong
    }
    return;
  }
  waiting_.erase(pod.uid);
  bool annotations_wrong = false;
  const Result<PodRequest> request = request_of_bound(pod, annotations_wrong);
  if (!request.ok()) {
    notes_.add_one_of("bound pods whose requests cannot be read hold nothing here: " + request.message(), pod.key());
    return;
  }
  if (annotations_wrong) notes_.add_one_of("bound pods whose annotations are wrong count without them", pod.key());
  take_bound(pod, *request);
  if (pod.deleting) bookings_.leaves(pod.uid);
  if (pod.preempted && evictions_ != nullptr) evictions_->begun(pod.uid);
}

void StateFeed::take_bound(const kube::Pod& pod, const PodRequest& request) {
  DeviceSet devices;
  const auto annotation = pod.annotations.find(std::string(kube::kAssignedDevicesAnnotation));
  if (annotation != pod.annotations.end() && request.gpus > 0) {
    const auto assigned = kube::parse_assigned_devices(annotation->second);
    if (assigned.ok() && !assigned->by_uuid && assigned->devices.size() == request.gpus) {
      devices = assigned->devices;
    } else {
      notes_.add_one_of("pods whose annotation of devices does not say what they hold may hold any", pod.key());
    }
  }
  bookings_.bound(request, pod.node_name, devices);
  const Result<Nanoseconds> start = pod.start_time.empty() ? Nanoseconds{0} : kube::parse_time(pod.start_time);
  if (!start.ok()) {
    notes_.add_one_of("bound pods whose start is not known: status.startTime " + start.message(), pod.key());
  } else if (!pod.start_time.empty()) {
    bookings_.started(pod.uid, *start);
  }
  look_at_report(pod.node_name);
}

void StateFeed::delete_pod(std::string_view uid) {
  if (gang_feed_ != nullptr) gang_feed_->gone(uid);
  forget_pod(uid);
}

void StateFeed::forget_pod(std::string_view uid) {
  waiting_.erase(std::string(uid));
  bad_pods_.erase(std::string(uid));
  const Booking* booking = bookings_.find(uid);
  const std::string node = booking == nullptr ? std::string() : booking->node;
  bookings_.ended(uid);
  if (booking != nullptr && gangs_ != nullptr) gangs_->freed();
  look_at_report(node);
}

void StateFeed::take_samples(const Result<std::vector<kube::GpuSample>>& samples) {
  if (samples.ok()) {
    observer_.look_at(*samples);
    return;
  }
  bookings_.could_not_ask();
  notes_.add_one_of("answers with DCGM series that were of no use; the first", samples.message());
}

void StateFeed::bad_node(std::string_view name, std::string_view why) {
  bad_nodes_.emplace(name);
  notes_.add_one_of("nodes of the wrong form stay as they were: " + std::string(why), name);
}

void StateFeed::bad_pod(std::string_view uid, std::string_view name, std::string_view why) {
  bad_pods_.emplace(uid);
  notes_.add_one_of("pods of the wrong form stay as they were: " + std::string(why), name);
}

void StateFeed::bad_report(std::string_view name, std::string_view why) {
  delete_report(name);
  notes_.add_one_of("topology reports of the wrong form are left out: " + std::string(why), name);
}

const WaitingPod* StateFeed::waiting(std::string_view uid) const {
  const auto found = waiting_.find(uid);
  return found == waiting_.end() ? nullptr : &found->second;
}

}  // namespace mortise::extender
