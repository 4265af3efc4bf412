#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "scheduler/topology/device_manager.h"

namespace mortise::topology {
namespace {

// Members of one orbit among the devices to pick from.
struct Part {
  std::uint16_t orbit = 0;
  std::vector<std::size_t> members;
};

std::vector<Part> by_orbit(const DeviceUse& use, const IndexSet& pool) {
  std::map<std::uint16_t, Part> parts;
  pool.for_each([&](std::size_t i) {
    Part& part = parts[use.orbit[i]];
    part.orbit = use.orbit[i];
    part.members.push_back(i);
  });
  std::vector<Part> list;
  for (auto& [orbit, part] : parts) list.push_back(std::move(part));
  return list;
}

// From now on it is not known which members of `part` were picked. If other devices of the orbit were not in the
// pool, they are no longer like these.
void open_orbit(DeviceUse& use, const Part& part) {
  if (use.open[part.orbit]) return;
  const auto fresh = static_cast<std::uint16_t>(use.open.size());
  use.open.push_back(true);
  for (const std::size_t i : part.members) use.orbit[i] = fresh;
}

/// One allocation: the devices taken for sure, and at most one step whose choice is open.
struct Allocation {
  IndexSet taken;
  IndexSet pool;  ///< of which `open_count` more are taken
  std::int64_t open_count = 0;
  std::int64_t needed = 0;

  /// Takes from `devices` as far as needed, in no particular order. True once nothing is missing.
  bool take(const IndexSet& devices) {
    const IndexSet fresh = devices - taken;
    const auto count = static_cast<std::int64_t>(fresh.count());
    if (count <= needed) {
      taken |= fresh;
      needed -= count;
    } else {
      pool = fresh;
      open_count = needed;
      needed = 0;
    }
    return needed == 0;
  }
};

struct ByAffinity {
  IndexSet aligned;
  IndexSet unaligned;
  IndexSet no_affinity;
};

ByAffinity split(const DeviceResource& resource, const IndexSet& available, NumaMask affinity, bool is_aligned) {
  ByAffinity parts;
  if (affinity == kAnyNuma || !is_aligned) {
    parts.no_affinity = available;
    return parts;
  }
  available.for_each([&](std::size_t i) {
    const Device& device = resource.devices[i];
    if (device.topology != DeviceTopology::kNodes) {
      parts.no_affinity.insert(i);
    } else if ((device.numa & affinity) != 0) {
      parts.aligned.insert(i);
    } else {
      parts.unaligned.insert(i);
    }
  });
  return parts;
}

bool is_known(const DeviceUse& use, const IndexSet& devices) {
  bool known = true;
  devices.for_each([&](std::size_t i) { known = known && !use.open[use.orbit[i]]; });
  return known;
}

/// Enumerates how many of each orbit are picked.
class Choices {
 public:
  Choices(const DeviceUse& use, const Allocation& allocation, std::size_t limit)
      : use_(use), allocation_(allocation), parts_(by_orbit(use, allocation.pool)), limit_(limit) {}

  /// False: there are more than the limit.
  bool collect(std::vector<std::pair<DeviceUse, IndexSet>>& out) {
    picked_.assign(parts_.size(), 0);
    return descend(0, allocation_.open_count, out);
  }

 private:
  bool descend(std::size_t at, std::int64_t left, std::vector<std::pair<DeviceUse, IndexSet>>& out) {
    if (at == parts_.size()) return left > 0 || emit(out);
    const auto most = std::min(left, static_cast<std::int64_t>(parts_[at].members.size()));
    for (std::int64_t count = most; count >= 0; --count) {
      picked_[at] = count;
      if (!descend(at + 1, left - count, out)) return false;
    }
    return true;
  }

  bool emit(std::vector<std::pair<DeviceUse, IndexSet>>& out) {
    if (out.size() == limit_) return false;
    DeviceUse use = use_;
    IndexSet taken = allocation_.taken;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::vector<std::size_t>& members = parts_[i].members;
      const auto count = static_cast<std::size_t>(picked_[i]);
      for (std::size_t j = 0; j < count; ++j) taken.insert(members[j]);
      if (count > 0 && count < members.size()) open_orbit(use, parts_[i]);
    }
    out.emplace_back(std::move(use), taken);
    return true;
  }

  const DeviceUse& use_;
  const Allocation& allocation_;
  std::vector<Part> parts_;
  std::size_t limit_;
  std::vector<std::int64_t> picked_;
};

DeviceGrant describe(const DeviceUse& use, std::size_t resource, const IndexSet& taken) {
  DeviceGrant grant;
  grant.resource = resource;
  for (const Part& part : by_orbit(use, taken)) {
    if (!use.open[part.orbit]) {
      for (const std::size_t i : part.members) grant.exact.insert(i);
      continue;
    }
    SomeDevices some;
    some.count = static_cast<std::int64_t>(part.members.size());
    for (std::size_t i = 0; i < use.orbit.size(); ++i) {
      if (use.orbit[i] == part.orbit) some.of.insert(i);
    }
    grant.some.push_back(some);
  }
  return grant;
}

void finish(DeviceResult& result, const ContainerAsk& container, const IndexSet& taken) {
  result.use.available -= taken;
  if (container.role == ContainerRole::kInit) {
    result.use.reusable |= taken;
  } else {
    result.use.reusable -= taken;
  }
}

IndexSet healthy_of(const DeviceResource& resource) {
  IndexSet healthy;
  for (std::size_t i = 0; i < resource.devices.size(); ++i) {
    if (resource.devices[i].healthy) healthy.insert(i);
  }
  return healthy;
}

// Fills `allocation` in kubelet's order: reuse, aligned devices, what the plugin prefers, the others.
Refusal choose(const DeviceResource& resource, const DeviceUse& use, const DeviceAsk& ask, NumaMask affinity,
               bool aligned_resource, const PreferredAllocation& preferred, Allocation& allocation) {
  if (allocation.take(use.reusable)) return {};
  const auto free = static_cast<std::int64_t>(use.available.count());
  if (free < allocation.needed) {
    return unexpected("requested number of devices unavailable for " + resource.name +
                      ". Requested: " + std::to_string(allocation.needed) + ", Available: " + std::to_string(free));
  }
  const ByAffinity parts = split(resource, use.available, affinity, aligned_resource);
  const auto prefer = [&](const IndexSet& among) -> Refusal {
    if (!preferred) return {};
    const Result<IndexSet> wish = preferred(ask.resource, among | allocation.taken, allocation.taken, ask.count);
    if (!wish) return unexpected("device plugin GetPreferredAllocation rpc failed with err: " + wish.message());
    allocation.take(*wish & among);
    return {};
  };
  if (allocation.needed < static_cast<std::int64_t>(parts.aligned.count())) {
    Refusal refusal = prefer(parts.aligned);
    if (!refusal.refused() && allocation.needed > 0) allocation.take(parts.aligned);
    return refusal;
  }
  if (allocation.take(parts.aligned)) return {};
  if (Refusal refusal = prefer(use.available); refusal.refused()) return refusal;
  if (allocation.needed > 0 && !allocation.take(parts.unaligned)) allocation.take(parts.no_affinity);
  return {};
}

}  // namespace

DeviceUse DeviceUse::of(const DeviceResource& resource, const KubeletRules& rules, std::optional<NumaMask> fixed) {
  DeviceUse use;
  const bool placed = is_aligned(resource, rules) && fixed != kAnyNuma;
  std::map<std::tuple<DeviceTopology, NumaMask, std::uint32_t>, std::uint16_t> orbits;
  for (std::size_t i = 0; i < resource.devices.size(); ++i) {
    const Device& device = resource.devices[i];
    if (device.healthy && !device.allocated) use.available.insert(i);
    std::tuple key{DeviceTopology::kNone, NumaMask{0}, device.alike};
    if (placed && !fixed) key = {device.topology, device.numa, device.alike};
    if (placed && fixed && device.topology == DeviceTopology::kNodes) {
      key = {device.topology, (device.numa & *fixed) != 0 ? 1U : 0U, device.alike};
    }
    const auto next = static_cast<std::uint16_t>(orbits.size());
    use.orbit.push_back(orbits.try_emplace(key, next).first->second);
  }
  use.open.assign(orbits.size(), false);
  return use;
}

Refusal allocate_devices(const NodeState& node, const KubeletRules& rules, const DeviceUse& use,
                         const ContainerAsk& container, const DeviceAsk& ask, NumaMask affinity,
                         const PreferredAllocation& preferred, DeviceFollowUp& follow_up,
                         std::vector<DeviceResult>& results) {
  const DeviceResource& resource = node.devices[ask.resource];
  const IndexSet healthy = healthy_of(resource);
  IndexSet held;
  bool holds = false;
  for (const AssignedDevices& assigned : container.assigned.devices) {
    if (assigned.resource != ask.resource) continue;
    held = assigned.devices;
    holds = true;
  }
  if (holds && static_cast<std::int64_t>(held.count()) != ask.count) {
    return unexpected("container \"" + container.name + "\" changed request for resource \"" + resource.name +
                      "\" from " + std::to_string(held.count()) + " to " + std::to_string(ask.count));
  }
  if (healthy.empty()) {
    return unexpected("no healthy devices present; cannot allocate unhealthy devices " + resource.name);
  }
  if (!held.is_subset_of(healthy)) {
    return unexpected("previously allocated devices are no longer healthy; cannot allocate unhealthy devices " +
                      resource.name);
  }
  if (holds || ask.count == 0) {
    DeviceResult result{use, describe(use, ask.resource, held)};
    finish(result, container, held);
    results.push_back(std::move(result));
    return {};
  }
  Allocation allocation;
  allocation.needed = ask.count;
  const bool aligned = is_aligned(resource, rules);
  if (Refusal refusal = choose(resource, use, ask, affinity, aligned, preferred, allocation); refusal.refused()) {
    return refusal;
  }
  if (allocation.open_count > 0 && follow_up.last && is_known(use, allocation.pool)) {
    DeviceResult result{use, describe(use, ask.resource, allocation.taken)};
    result.grant.some.push_back({allocation.pool, allocation.open_count});
    results.push_back(std::move(result));
    return {};
  }
  std::vector<std::pair<DeviceUse, IndexSet>> choices;
  follow_up.complete = Choices(use, allocation, follow_up.limit).collect(choices) && follow_up.complete;
  for (auto& [next, taken] : choices) {
    DeviceResult result{std::move(next), {}};
    result.grant = describe(result.use, ask.resource, taken);
    finish(result, container, taken);
    results.push_back(std::move(result));
  }
  return {};
}

}  // namespace mortise::topology
