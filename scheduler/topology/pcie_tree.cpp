#include "scheduler/topology/pcie_tree.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <map>

namespace mortise::topology {
namespace {

// The bridges above a device, nearest first.
std::vector<int> ancestors(std::span<const Bridge> bridges, int bridge) {
  std::vector<int> chain;
  for (; bridge >= 0; bridge = bridges[static_cast<std::size_t>(bridge)].parent) chain.push_back(bridge);
  return chain;
}

template <class Device>
DevicePlace place_on(const Machine& machine, const Device& device) {
  DevicePlace place{device.bridge, device.numa};
  if (place.numa.empty() && place.bridge) {
    place.numa = machine.bridges[static_cast<std::size_t>(ancestors(machine.bridges, *place.bridge).back())].numa;
  }
  return place;
}

LinkClass class_at(const Bridge& common, std::size_t below_a, std::size_t below_b) {
  if (common.kind == BridgeKind::kHostBridge) return LinkClass::kPhb;
  if (common.kind == BridgeKind::kCascade) return LinkClass::kPxb;
  // One bridge below the common one is a port of the same switch.
  return below_a <= 1 && below_b <= 1 ? LinkClass::kPix : LinkClass::kPxb;
}

// The group of every device when devices at most `farthest` apart are together.
std::vector<int> groups(std::span<const LinkClass> classes, std::size_t devices, LinkClass farthest) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> graph(devices);
  for (std::size_t a = 0; a < devices; ++a) {
    for (std::size_t b = a + 1; b < devices; ++b) {
      if (classes[a * devices + b] <= farthest) boost::add_edge(a, b, graph);
    }
  }
  std::vector<int> group(devices);
  boost::connected_components(graph, group.data());
  return group;
}

// Puts a bridge above the devices of every group of two or more, below the bridge they have so far.
void add_level(InferredTree& tree, std::span<const LinkClass> classes, std::span<const std::vector<int>> numa,
               LinkClass farthest, BridgeKind kind) {
  const std::size_t devices = numa.size();
  std::map<int, std::vector<std::size_t>> members;
  const std::vector<int> group = groups(classes, devices, farthest);
  for (std::size_t i = 0; i < devices; ++i) members[group[i]].push_back(i);
  for (const auto& [id, list] : members) {
    if (list.size() < 2) continue;
    Bridge bridge;
    bridge.kind = kind;
    bridge.parent = tree.device_bridge[list.front()].value_or(-1);
    for (const std::size_t device : list) {
      if (kind == BridgeKind::kHostBridge && bridge.numa.empty()) bridge.numa = numa[device];
    }
    const int at = static_cast<int>(tree.bridges.size());
    for (const std::size_t device : list) tree.device_bridge[device] = at;
    tree.bridges.push_back(std::move(bridge));
  }
}

}  // namespace

DevicePlace place_of(const Machine& machine, const Gpu& gpu) {
  return place_on(machine, gpu);
}

DevicePlace place_of(const Machine& machine, const Nic& nic) {
  return place_on(machine, nic);
}

LinkClass tree_class(std::span<const Bridge> bridges, const DevicePlace& a, const DevicePlace& b) {
  if (a.bridge && b.bridge) {
    const std::vector<int> above_a = ancestors(bridges, *a.bridge);
    const std::vector<int> above_b = ancestors(bridges, *b.bridge);
    for (std::size_t i = 0; i < above_a.size(); ++i) {
      const auto found = std::find(above_b.begin(), above_b.end(), above_a[i]);
      if (found == above_b.end()) continue;
      return class_at(bridges[static_cast<std::size_t>(*found)], i, static_cast<std::size_t>(found - above_b.begin()));
    }
    if (!a.numa.empty() && a.numa == b.numa) return LinkClass::kNode;
  }
  const bool apart = std::none_of(a.numa.begin(), a.numa.end(),
                                  [&](int id) { return std::find(b.numa.begin(), b.numa.end(), id) != b.numa.end(); });
  if (!a.numa.empty() && !b.numa.empty() && apart) return LinkClass::kSys;
  return LinkClass::kUnknown;
}

InferredTree infer_tree(std::span<const LinkClass> classes, std::span<const std::vector<int>> numa) {
  InferredTree tree;
  tree.device_bridge.resize(numa.size());
  add_level(tree, classes, numa, LinkClass::kPhb, BridgeKind::kHostBridge);
  add_level(tree, classes, numa, LinkClass::kPxb, BridgeKind::kCascade);
  add_level(tree, classes, numa, LinkClass::kPix, BridgeKind::kSwitch);
  return tree;
}

}  // namespace mortise::topology
