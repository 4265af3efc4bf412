#include "scheduler/kube/objects/bound_pods.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/base/quote.h"
#include "traces/limits.h"

namespace mortise::kube {
namespace {

using placement::DeviceSet;
using placement::kMaxDevices;
using placement::NodeSpec;
using placement::PodRequest;

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
  return request.cpu > traces::kMaxCpuMilli - held.cpu || request.memory > traces::kMaxMemoryMib * kMiB - held.memory;
}

/// Devices for a pod whose own are not known. Adds as many as lack: the node lost them after its pods had started.
/// Empty: more than any node has.
std::optional<DeviceSet> devices_for(Held& held, const PodRequest& request) {
  const auto fitting =
      std::count_if(held.free.begin(), held.free.end(), [&](std::int16_t left) { return left >= request.gpu_milli; });
  const auto lacking = std::max<std::int64_t>(0, request.gpus - fitting);
  if (lacking > kMaxDevices - static_cast<std::int64_t>(held.free.size())) return std::nullopt;
  held.free.insert(held.free.end(), static_cast<std::size_t>(lacking), static_cast<std::int16_t>(kWholeGpu));
  return lowest_devices(held.free, request);
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
  const std::int32_t gpus = node.gpus;
  raise(node.gpus, static_cast<std::int32_t>(held.free.size()), "GPUs");
  if (node.gpus != gpus) node.topology = nullptr;  // it has fewer GPUs than now count
  if (!what.empty()) notes.add("node " + quote(node.name) + " holds more than it has and counts as full: " + what);
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
  node.blocked = true;
  notes.add("node " + quote(node.name) + " takes no more GPU pods: what its pod " + quote(pod) +
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
  const auto book = [&](std::size_t i) {
    const BoundPod& pod = file.pods[i];
    const std::size_t n = index.at(pod.node);
    std::optional<DeviceSet> devices;
    if (!beyond_any_bound(held[n], pod.request)) {
      devices = pod.devices.empty() ? devices_for(held[n], pod.request) : pod.devices;
    }
    if (devices) return take(held[n], pod.request, *devices);
    dropped[i] = true;
    close_node(file.nodes[n], pod.request.ns + "/" + pod.request.name, "more than any node has", notes);
  };

  for (std::size_t i = 0; i < file.pods.size(); ++i) {
    BoundPod& pod = file.pods[i];
    if (pod.devices.empty()) continue;
    const Held& now = held[index.at(pod.node)];
    if (pod.devices.size() == pod.request.gpus && has_room(now, pod.devices, pod.request.gpu_milli)) {
      book(i);
      continue;
    }
    pod.devices = {};
    notes.add("pod " + quote(pod.request.ns + "/" + pod.request.name) + ": its devices by annotation are not " +
              std::to_string(pod.request.gpus) + " free devices of node " + quote(pod.node) +
              "; the lowest free ones count instead");
  }
  for (const std::size_t i : booking_order(file.pods)) {
    if (file.pods[i].devices.empty()) book(i);
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
