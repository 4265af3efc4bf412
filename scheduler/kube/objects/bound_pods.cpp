#include "scheduler/kube/objects/bound_pods.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/base/quote.h"

namespace mortise::kube {
namespace {

using placement::DeviceSet;
using placement::kMaxDevices;
using placement::NodeSpec;
using placement::PodRequest;

// As for nodes: above any machine, and sums over a cluster stay within 64 bits.
constexpr MilliCpu kMaxHeldCpu = 1'000'000'000;
constexpr Bytes kMaxHeldMemory = Bytes{1} << 50;

/// What the pods of one node hold so far.
struct Held {
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t pods = 0;
  std::vector<std::int16_t> free;  ///< milli-GPU left per device
};

bool has_room(const Held& held, const DeviceSet& devices, MilliGpu share) {
  bool room = true;
  devices.for_each([&](int device) {
    const auto at = static_cast<std::size_t>(device);
    room = room && at < held.free.size() && held.free[at] >= share;
  });
  return room;
}

void take(Held& held, const PodRequest& request, const DeviceSet& devices) {
  held.cpu += request.cpu;
  held.memory += request.memory;
  held.pods += 1;
  devices.for_each([&](int device) {
    std::int16_t& left = held.free[static_cast<std::size_t>(device)];
    left = static_cast<std::int16_t>(left - request.gpu_milli);
  });
}

bool beyond_any_bound(const Held& held, const PodRequest& request) {
  return request.cpu > kMaxHeldCpu - held.cpu || request.memory > kMaxHeldMemory - held.memory;
}

/// Adds devices until the pod fits; the node lost them after the pods had started. Empty: too many.
std::optional<DeviceSet> devices_for(Held& held, const PodRequest& request) {
  while (true) {
    const auto devices = lowest_devices(held.free, request);
    if (devices) return devices;
    if (held.free.size() == static_cast<std::size_t>(kMaxDevices)) return std::nullopt;
    held.free.push_back(static_cast<std::int16_t>(kWholeGpu));
  }
}

void count_as_full(NodeSpec& node, const Held& held, Notes& notes) {
  std::string what;
  const auto raise = [&what](auto& has, auto holds, std::string_view name) {
    if (holds <= has) return;
    what += (what.empty() ? "" : ", ") + std::string(name) + " (has " + std::to_string(has) + ", held " +
            std::to_string(holds) + ")";
    has = holds;
  };
  raise(node.cpu, held.cpu, "milli-CPU");
  raise(node.memory, held.memory, "bytes of memory");
  raise(node.pods, held.pods, "pods");
  raise(node.gpus, static_cast<std::int32_t>(held.free.size()), "GPUs");
  if (!what.empty()) notes.add("node " + quote(node.name) + " counts as full: its pods hold more than it has: " + what);
}

}  // namespace

std::vector<std::size_t> booking_order(const std::vector<BoundPod>& pods) {
  const auto rank = [&](std::size_t i) {
    const BoundPod& pod = pods[i];
    if (pod.request.gpus == 0 || !pod.devices.empty()) return 0;
    return pod.request.gpu_milli == kWholeGpu ? 1 : 2;
  };
  std::vector<std::size_t> order(pods.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return order;
}

std::optional<DeviceSet> lowest_devices(std::span<const std::int16_t> free, const PodRequest& request) {
  DeviceSet devices;
  for (std::size_t i = 0; i < free.size() && devices.size() < request.gpus; ++i) {
    if (free[i] >= request.gpu_milli) devices.insert(static_cast<int>(i));
  }
  if (devices.size() < request.gpus) return std::nullopt;
  return devices;
}

void close_node(NodeSpec& node, const std::string& pod, const std::string& why, Notes& notes) {
  node.schedulable = false;
  notes.add("node " + quote(node.name) + " takes no more pods: what its pod " + quote(pod) +
            " holds is not known: " + why);
}

void settle_bound_pods(ClusterFile& file, Notes& notes) {
  std::map<std::string_view, std::size_t> index;
  std::vector<Held> held(file.nodes.size());
  for (std::size_t n = 0; n < file.nodes.size(); ++n) {
    index.emplace(file.nodes[n].name, n);
    held[n].free.assign(static_cast<std::size_t>(file.nodes[n].gpus), static_cast<std::int16_t>(kWholeGpu));
  }
  std::vector<bool> dropped(file.pods.size(), false);
  const auto book = [&](std::size_t i, const std::optional<DeviceSet>& devices) {
    const BoundPod& pod = file.pods[i];
    const std::size_t n = index.at(pod.node);
    if (devices && !beyond_any_bound(held[n], pod.request)) return take(held[n], pod.request, *devices);
    dropped[i] = true;
    close_node(file.nodes[n], pod.request.ns + "/" + pod.request.name, "more than any node has", notes);
  };

  for (std::size_t i = 0; i < file.pods.size(); ++i) {
    BoundPod& pod = file.pods[i];
    if (pod.devices.empty()) continue;
    const Held& now = held[index.at(pod.node)];
    if (pod.devices.size() == pod.request.gpus && has_room(now, pod.devices, pod.request.gpu_milli)) {
      book(i, pod.devices);
      continue;
    }
    pod.devices = {};
    notes.add("pod " + quote(pod.request.ns + "/" + pod.request.name) + ": its devices by annotation are not " +
              std::to_string(pod.request.gpus) + " free devices of node " + quote(pod.node) +
              "; the lowest free ones count instead");
  }
  for (const std::size_t i : booking_order(file.pods)) {
    const BoundPod& pod = file.pods[i];
    if (pod.devices.empty()) book(i, devices_for(held[index.at(pod.node)], pod.request));
  }

  for (std::size_t n = 0; n < file.nodes.size(); ++n) count_as_full(file.nodes[n], held[n], notes);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < file.pods.size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) file.pods[kept] = std::move(file.pods[i]);
    ++kept;
  }
  file.pods.resize(kept);
}

}  // namespace mortise::kube
