#include "scheduler/extender/observer.h"

#include <bit>
#include <set>

#include "scheduler/kube/objects/time_text.h"

namespace mortise::extender {
namespace {

using placement::DeviceSet;
using placement::NodeTopology;
using topology::NodeTopologyReport;

/// GPUs by NUMA node, without the nodes that have none; nothing where a GPU is near several or none is told.
std::optional<std::map<int, int>> gpus_by_numa(const NodeTopology& node) {
  std::map<int, int> gpus;
  for (const placement::GpuMask alike : node.numa_classes()) {
    const topology::NumaMask near = node.numa_of(std::countr_zero(alike));
    if (topology::width(near) != 1) return std::nullopt;
    gpus[std::countr_zero(near)] = std::popcount(alike);
  }
  return gpus;
}

/// What the report says of kubelet's GPUs, by NUMA node; nothing when it leaves one out, or has another machine.
std::optional<std::map<int, int>> gpus_in_use(const NodeTopologyReport& report, const NodeTopology& node) {
  std::map<int, int> in_use;
  std::map<int, int> capacity;
  for (const topology::Zone& zone : report.zones) {
    for (const topology::ZoneResource& resource : zone.resources) {
      if (resource.name != topology::kNrtGpuResource || resource.capacity == 0) continue;
      if (!resource.has_available || resource.available > resource.allocatable) return std::nullopt;
      if (resource.allocatable > resource.capacity) return std::nullopt;
      in_use[zone.numa] += static_cast<int>(resource.allocatable - resource.available);
      capacity[zone.numa] += static_cast<int>(resource.capacity);
    }
  }
  if (capacity != gpus_by_numa(node)) return std::nullopt;
  return in_use;
}

/// The device with this index of nvidia-smi; nothing where that is not known of the node.
std::optional<int> device_at(const NodeTopology& node, int index) {
  const topology::Machine& machine = node.graph().machine();
  if (!machine.gpus_numbered) return std::nullopt;
  for (int at = 0; at < node.gpus(); ++at) {
    if (node.graph().gpu(at).index == index) return at;
  }
  return std::nullopt;
}

std::string in_words(const std::map<int, int>& in_use) {
  std::string text = "GPUs in use by NUMA node:";
  for (const auto& [numa, gpus] : in_use) text += " " + std::to_string(numa) + ":" + std::to_string(gpus);
  return text;
}

}  // namespace

void Observer::look_at(const NodeTopologyReport& report) {
  const std::string& name = report.reading.node;
  const placement::ClusterState& cluster = bookings_.cluster();
  const auto id = cluster.find_node(name);
  if (!id) return;
  const NodeTopology* node = cluster.topology_of(cluster.machine_of(*id));
  if (node == nullptr || node->enforced()) return;
  const Result<Nanoseconds> written = kube::parse_time(report.written);
  const auto in_use = gpus_in_use(report, *node);
  if (!written.ok() || !in_use) return;
  std::vector<AllocationId> pods;
  int held = 0;
  bool certain = true;
  bookings_.for_each_on(name, [&](const std::string&, const Booking& booking) {
    if (booking.request.gpus == 0) return;
    // Kubelet assigns devices before it says that the pod has started. Times are in whole seconds.
    certain = certain && booking.stage == Booking::Stage::kBound && booking.allocation && !booking.is_short(cluster) &&
              booking.started && *booking.started < *written;
    if (booking.allocation) pods.push_back(*booking.allocation);
    held += booking.request.gpus;
  });
  int reported = 0;
  for (const auto& [numa, gpus] : *in_use) reported += gpus;
  if (certain && reported == held) bookings_.saw_count(name, *in_use, pods, Witness::kReport, in_words(*in_use));
}

void Observer::look_at(const std::vector<kube::GpuSample>& samples) {
  std::map<std::string, std::vector<const kube::GpuSample*>> by_node;
  for (const kube::GpuSample& sample : samples) {
    for (const std::string& node : std::set<std::string>(sample.nodes.begin(), sample.nodes.end())) {
      by_node[node].push_back(&sample);
    }
  }
  for (const auto& [node, here] : by_node) look_at_node(node, here);
}

void Observer::look_at_node(const std::string& name, const std::vector<const kube::GpuSample*>& samples) {
  const placement::ClusterState& cluster = bookings_.cluster();
  const auto id = cluster.find_node(name);
  if (!id) return;
  const NodeTopology* node = cluster.topology_of(cluster.machine_of(*id));
  if (node == nullptr) return;
  std::map<std::string, DeviceSet> seen;  // by UID
  std::map<int, int> pods_on;             // by device
  bookings_.for_each_on(name, [&](const std::string& uid, const Booking& booking) {
    if (booking.stage != Booking::Stage::kBound) return;
    DeviceSet devices;
    for (const kube::GpuSample* sample : samples) {
      if (sample->pod != booking.request.name || sample->ns != booking.request.ns) continue;
      const bool same = sample->pod_uid.empty() ? booking.started && sample->at > *booking.started + kExporterLag
                                                : sample->pod_uid == uid;
      const auto device = device_at(*node, sample->gpu);
      if (same && device) devices.insert(*device);
    }
    devices.for_each([&](int device) { ++pods_on[device]; });
    if (devices.size() == booking.request.gpus && !devices.empty()) seen.emplace(uid, devices);
  });
  for (const auto& [uid, devices] : seen) {
    bool alone = true;
    std::string what = "a pod on GPUs";
    devices.for_each([&](int device) {
      alone = alone && pods_on[device] == 1;
      what += " " + std::to_string(device);
    });
    if (alone) bookings_.saw_devices(uid, devices, Witness::kDcgm, what);
  }
}

}  // namespace mortise::extender
