#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/topology/sources/synthetic.h"

namespace mortise::topology {
namespace {

// Guesses the items from counts; whether the guess is right is seen by reading it back.
class SyntheticWriter {
 public:
  explicit SyntheticWriter(const Machine& machine) : machine_(machine) {}

  std::string write() {
    write_levels();
    write_devices("gpu", machine_.gpus);
    write_devices("nic", machine_.nics);
    write_numa();
    if (!machine_.gpus.empty() && !machine_.gpus.front().model.empty()) put("model", machine_.gpus.front().model);
    write_nvlinks();
    if (machine_.kubelet.policy) put("policy", std::string(to_text(*machine_.kubelet.policy)));
    if (machine_.kubelet.scope) put("scope", *machine_.kubelet.scope == TopologyScope::kPod ? "pod" : "container");
    return text_;
  }

 private:
  void put(std::string_view name, const std::string& value) {
    text_.append(text_.empty() ? "" : " ").append(name).append(":").append(value);
  }

  void write_levels() {
    std::vector<int> sockets;
    for (const NumaNode& node : machine_.numa) {
      if (node.memory_of_gpu) continue;
      ++numa_;
      if (node.socket) sockets.push_back(*node.socket);
    }
    std::sort(sockets.begin(), sockets.end());
    const auto count = static_cast<int>(std::unique(sockets.begin(), sockets.end()) - sockets.begin());
    if (count > 0) put("socket", std::to_string(count));
    put("numa", std::to_string(numa_ / std::max(count, 1)));
    std::map<BridgeKind, int> bridges;
    for (const Bridge& bridge : machine_.bridges) ++bridges[bridge.kind];
    const int hosts = bridges[BridgeKind::kHostBridge];
    const int cascades = bridges[BridgeKind::kCascade];
    const int switches = bridges[BridgeKind::kSwitch];
    put("bridge", std::to_string(hosts / std::max(numa_, 1)));
    if (cascades > 0) put("cascade", std::to_string(cascades / std::max(hosts, 1)));
    if (switches > 0) put("switch", std::to_string(switches / std::max(cascades > 0 ? cascades : hosts, 1)));
    const BridgeKind innermost = switches > 0   ? BridgeKind::kSwitch
                                 : cascades > 0 ? BridgeKind::kCascade
                                                : BridgeKind::kHostBridge;
    for (std::size_t i = 0; i < machine_.bridges.size(); ++i) {
      if (machine_.bridges[i].kind == innermost) place_.emplace(static_cast<int>(i), static_cast<int>(place_.size()));
    }
  }

  template <class Device>
  void write_devices(std::string_view name, const std::vector<Device>& devices) {
    if (devices.empty()) return;
    std::vector<std::pair<int, int>> runs;  // place, count
    for (const Device& device : devices) {
      const auto found = place_.find(device.bridge.value_or(-1));
      const int place = found == place_.end() ? 0 : found->second;
      if (runs.empty() || runs.back().first != place) runs.emplace_back(place, 0);
      ++runs.back().second;
    }
    bool even = runs.size() == place_.size();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      even = even && runs[i].first == static_cast<int>(i) && runs[i].second == runs.front().second;
    }
    if (even) return put(name, std::to_string(runs.front().second));
    std::string list;
    for (const auto& [place, count] : runs) {
      list += (list.empty() ? "" : ",") + std::to_string(count) + "@" + std::to_string(place);
    }
    put(name, list);
  }

  void write_numa() {
    if (machine_.numa.empty()) return;
    const NumaNode& first = machine_.numa.front();
    if (first.cpus && !first.cpus->empty()) {
      const int cores = first.cpus->front().last + 1;
      const auto threads = first.cpus->size();
      // One range holds the first threads only when another node's CPUs stand between; with one node all are joined.
      put("cpu", std::to_string(cores) + (threads > 1 ? "x" + std::to_string(threads) : ""));
    }
    if (first.memory) put("memory", std::to_string(*first.memory));
    if (!first.distances.empty()) {
      const int near = distance_to(first, 1);
      const int far = distance_to(first, numa_ - 1);
      put("distance", near == far ? std::to_string(far) : std::to_string(near) + "," + std::to_string(far));
    }
    for (const NumaNode& node : machine_.numa) {
      if (node.memory_of_gpu && node.memory) return put("gpumem", std::to_string(*node.memory));
    }
  }

  int distance_to(const NumaNode& from, int position) const {
    const auto at = static_cast<std::size_t>(std::clamp(position, 0, static_cast<int>(from.distances.size()) - 1));
    return from.distances[at].value;
  }

  void write_nvlinks() {
    const std::vector<GpuLink>& links = machine_.gpu_links;
    if (links.empty()) return;
    if (links.front().switched.value_or(false)) {
      put("nvlink", std::to_string(links.front().nvlinks));
      int reach = 0;
      for (const GpuLink& link : links) reach = std::max(reach, link.a == 0 ? link.b : 0);
      return put("nvswitch", std::to_string(machine_.gpus.size() / static_cast<std::size_t>(reach + 1)));
    }
    const std::size_t gpus = machine_.gpus.size();
    const bool alike = std::all_of(links.begin(), links.end(),
                                   [&](const GpuLink& link) { return link.nvlinks == links.front().nvlinks; });
    if (alike && links.size() > 1 && links.size() == gpus * (gpus - 1) / 2) {
      return put("nvlink", "all*" + std::to_string(links.front().nvlinks));
    }
    std::string list;
    for (const GpuLink& link : links) {
      list += (list.empty() ? "" : ",") + std::to_string(link.a) + "-" + std::to_string(link.b);
      if (link.nvlinks != 1) list += "*" + std::to_string(link.nvlinks);
    }
    put("nvlink", list);
  }

  const Machine& machine_;
  std::string text_;
  int numa_ = 0;
  std::map<int, int> place_;  // bridge -> position among the innermost ones
};

}  // namespace

Result<std::string> to_synthetic(const Machine& machine) {
  std::string text = SyntheticWriter(machine).write();
  const auto again = read_synthetic(text, "synthetic");
  if (!again || again->machine != machine) {
    return Error{"the machine has parts that the synthetic form does not express"};
  }
  return text;
}

}  // namespace mortise::topology
