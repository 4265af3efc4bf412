#include <algorithm>
#include <array>

#include "scheduler/topology/device_manager.h"

namespace mortise::topology {
namespace {

// Devices with the same NUMA nodes, counted.
struct Cluster {
  NumaMask numa = 0;
  std::int64_t installed = 0;
  std::int64_t usable = 0;
};

struct Census {
  std::vector<Cluster> clusters;
  std::vector<NumaMask> to_reuse;  ///< a mask must touch each of these
  bool unreachable_reuse = false;  ///< a device to be reused names no node: no mask contains it
};

Census take_census(const DeviceResource& resource, const IndexSet& available, const IndexSet& reusable) {
  Census census;
  for (std::size_t i = 0; i < resource.devices.size(); ++i) {
    const Device& device = resource.devices[i];
    const bool reuse = reusable.contains(i);
    if (reuse && device.topology != DeviceTopology::kNone) {
      if (device.numa == 0) census.unreachable_reuse = true;
      census.to_reuse.push_back(device.numa);
    }
    if (device.numa == 0) continue;
    auto cluster = std::find_if(census.clusters.begin(), census.clusters.end(),
                                [&](const Cluster& known) { return known.numa == device.numa; });
    if (cluster == census.clusters.end()) {
      census.clusters.push_back({device.numa, 0, 0});
      cluster = census.clusters.end() - 1;
    }
    ++cluster->installed;
    cluster->usable += (available.contains(i) ? 1 : 0) + (reuse ? 1 : 0);
  }
  std::sort(census.to_reuse.begin(), census.to_reuse.end());
  census.to_reuse.erase(std::unique(census.to_reuse.begin(), census.to_reuse.end()), census.to_reuse.end());
  return census;
}

HintList generate(const NodeState& node, const KubeletRules& rules, std::size_t resource, const IndexSet& available,
                  const IndexSet& reusable, std::int64_t asked) {
  const Census census = take_census(node.devices[resource], available, reusable);
  const NumaMask universe = hint_nodes(node, rules, resource);
  int fewest = width(universe);
  HintList hints;
  for_each_submask(universe, [&](NumaMask mask) {
    std::int64_t installed = 0;
    std::int64_t usable = 0;
    for (const Cluster& cluster : census.clusters) {
      if ((cluster.numa & mask) == 0) continue;
      installed += cluster.installed;
      usable += cluster.usable;
    }
    if (installed >= asked) fewest = std::min(fewest, width(mask));
    if (census.unreachable_reuse || usable < asked) return;
    for (const NumaMask numa : census.to_reuse) {
      if ((numa & mask) == 0) return;
    }
    hints.push_back({mask, false});
  });
  for (Hint& hint : hints) hint.preferred = width(hint.mask) == fewest;
  return hints.empty() ? no_placement() : hints;
}

const IndexSet* assigned_to(const ContainerAsk& container, std::size_t resource) {
  for (const AssignedDevices& assigned : container.assigned.devices) {
    if (assigned.resource == resource && !assigned.devices.empty()) return &assigned.devices;
  }
  return nullptr;
}

HintList regenerate(const NodeState& node, const KubeletRules& rules, const IndexSet& held, const DeviceAsk& ask) {
  if (static_cast<std::int64_t>(held.count()) != ask.count) return no_placement();
  return generate(node, rules, ask.resource, held, IndexSet{}, ask.count);
}

}  // namespace

NumaMask hint_nodes(const NodeState& node, const KubeletRules& rules, std::size_t resource) {
  if (!is_aligned(node.devices[resource], rules)) return 0;
  NumaMask named = 0;
  for (const Device& device : node.devices[resource].devices) named |= device.numa;
  named &= node.nodes.all;
  return rules.device_nodes_only && named != 0 ? named : node.nodes.all;
}

bool is_aligned(const DeviceResource& resource, const KubeletRules& rules) {
  return std::any_of(resource.devices.begin(), resource.devices.end(), [&](const Device& device) {
    return device.topology == DeviceTopology::kNodes ||
           (rules.empty_topology_aligns && device.topology == DeviceTopology::kEmpty);
  });
}

HintList device_hints(const NodeState& node, const KubeletConfig& config, const DeviceUse& use,
                      const ContainerAsk& container, const DeviceAsk& ask) {
  if (!is_aligned(node.devices[ask.resource], config.rules)) return no_preference();
  if (const IndexSet* held = assigned_to(container, ask.resource)) return regenerate(node, config.rules, *held, ask);
  if (static_cast<std::int64_t>((use.available | use.reusable).count()) < ask.count) return no_placement();
  return generate(node, config.rules, ask.resource, use.available, use.reusable, ask.count);
}

HintList device_hints(const NodeState& node, const KubeletConfig& config, const DeviceUse& use, const PodAsk& pod,
                      const DeviceAsk& ask) {
  if (!is_aligned(node.devices[ask.resource], config.rules)) return no_preference();
  IndexSet held;
  for (const ContainerAsk& container : pod.containers) {
    if (const IndexSet* part = assigned_to(container, ask.resource)) held |= *part;
  }
  if (!held.empty()) return regenerate(node, config.rules, held, ask);
  if (static_cast<std::int64_t>(use.available.count()) < ask.count) return no_placement();
  return generate(node, config.rules, ask.resource, use.available, IndexSet{}, ask.count);
}

std::vector<DeviceAsk> devices_of_pod(const PodAsk& pod) {
  std::vector<DeviceAsk> totals;
  for (const ContainerAsk& container : pod.containers) {
    for (const DeviceAsk& ask : container.devices) {
      const auto known = [&](const DeviceAsk& total) { return total.resource == ask.resource; };
      if (std::none_of(totals.begin(), totals.end(), known)) totals.push_back({ask.resource, 0});
    }
  }
  for (DeviceAsk& total : totals) {
    total.count = pod_total(pod, [&](const ContainerAsk& container) {
      for (const DeviceAsk& ask : container.devices) {
        if (ask.resource == total.resource) return ask.count;
      }
      return std::int64_t{0};
    });
  }
  std::sort(totals.begin(), totals.end(), [](const auto& a, const auto& b) { return a.resource < b.resource; });
  return totals;
}

}  // namespace mortise::topology
