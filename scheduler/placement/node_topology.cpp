#include "scheduler/placement/node_topology.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <utility>

#include "scheduler/topology/graph_sets.h"

namespace mortise::placement {
namespace {

using topology::CpuPlace;
using topology::CpuRange;
using topology::NumaMask;
using topology::TopologyPolicy;

constexpr GpuMask bit(int gpu) {
  return GpuMask{1} << gpu;
}

template <class F>
void for_each_bit(std::uint64_t mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

/// The fewest nodes of `all` for which `enough(nodes)`; 0 when not even all of them are, or when they are too many to
/// look at every subset.
template <class F>
int fewest_nodes(NumaMask all, F&& enough) {
  int fewest = 0;
  if (topology::width(all) > topology::HintMerger::kMaxHintNodes) return 0;
  for (NumaMask nodes = all; nodes != 0; nodes = (nodes - 1) & all) {
    const int width = topology::width(nodes);
    if ((fewest == 0 || width < fewest) && enough(nodes)) fewest = width;
  }
  return fewest;
}

/// CPUs in two ranges of one length are the first and second threads of the same cores: Linux numbers them so.
bool tells_threads(const std::vector<CpuRange>& ranges) {
  return ranges.size() == 2 && ranges[0].last - ranges[0].first == ranges[1].last - ranges[1].first;
}

void add_places(const std::vector<CpuRange>& ranges, int numa, int socket, std::vector<CpuPlace>& places) {
  const bool threads = tells_threads(ranges);
  for (const CpuRange& range : ranges) {
    for (int cpu = range.first; cpu <= range.last; ++cpu) {
      const int core = threads ? ranges[0].first + (cpu - range.first) : cpu;
      places.push_back({cpu, core, numa, socket, socket});
    }
  }
}

}  // namespace

Result<std::shared_ptr<const NodeTopology>> NodeTopology::build(TopologySpec spec,
                                                                std::shared_ptr<const topology::DeviceSets> sets) {
  if (const Status status = topology::check(spec.kubelet); !status) return status.error();
  std::shared_ptr<NodeTopology> made(new NodeTopology);
  NodeTopology& node = *made;
  node.spec_ = std::move(spec);
  node.sets_ = std::move(sets);
  const topology::KubeletConfig& kubelet = node.kubelet();
  node.managed_ = kubelet.policy != TopologyPolicy::kNone || kubelet.cpu_static || kubelet.memory_static;
  const int gpus = node.gpus();
  node.all_gpus_ = gpus == 64 ? ~GpuMask{0} : bit(gpus) - 1;
  node.plugin_known_ = node.sets_ != nullptr;
  node.peers_.assign(static_cast<std::size_t>(gpus), 0);
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a == b) continue;
      const topology::PairLink& link = node.graph().link(a, b);
      if (link.nvlinks > 0) node.peers_[static_cast<std::size_t>(a)] |= bit(b);
      if (link.nvlinks == 0 && link.pcie == topology::LinkClass::kUnknown) node.plugin_known_ = false;
    }
  }
  if (const Status status = node.fill_empty_node(); !status) return status.error();
  return std::shared_ptr<const NodeTopology>(std::move(made));
}

Status NodeTopology::fill_empty_node() {
  for (const topology::NumaNode& numa : graph().machine().numa) {
    if (numa.id < 0 || numa.id >= topology::kMaxNumaNodes) {
      return Error{"NUMA node " + std::to_string(numa.id) + " is out of range; allowed: 0 to " +
                   std::to_string(topology::kMaxNumaNodes - 1)};
    }
    empty_.nodes.all |= topology::numa_bit(numa.id);
  }
  empty_.nodes.distances.assign(topology::kMaxNumaNodes, std::vector<std::uint32_t>(topology::kMaxNumaNodes, 10));
  for (const topology::NumaNode& numa : graph().machine().numa) {
    for (const topology::NumaDistance& distance : numa.distances) {
      if (distance.to < 0 || distance.to >= topology::kMaxNumaNodes) continue;
      empty_.nodes.distances[static_cast<std::size_t>(numa.id)][static_cast<std::size_t>(distance.to)] =
          static_cast<std::uint32_t>(distance.value);
    }
  }
  topology::DeviceResource& devices = empty_.devices.emplace_back();
  devices.name = "nvidia.com/gpu";
  for (const topology::Gpu& gpu : graph().machine().gpus) {
    NumaMask numa = 0;
    for (const int id : gpu.numa) numa |= topology::numa_bit(id);
    const int position = static_cast<int>(numa_.size());
    devices.devices.push_back({std::to_string(gpu.index),
                               numa != 0 ? topology::DeviceTopology::kNodes : topology::DeviceTopology::kNone, numa,
                               true, false, static_cast<std::uint32_t>(position)});
    const auto same = std::find(numa_.begin(), numa_.end(), numa);
    if (same == numa_.end()) {
      numa_classes_.push_back(bit(position));
    } else {
      const GpuMask first = bit(static_cast<int>(same - numa_.begin()));
      *std::find_if(numa_classes_.begin(), numa_classes_.end(), [&](GpuMask c) { return (c & first) != 0; }) |=
          bit(position);
    }
    numa_.push_back(numa);
  }
  if (const Status cpus = fill_cpus(); !cpus) return cpus;
  return fill_memory();
}

Status NodeTopology::fill_cpus() {
  if (!kubelet().cpu_static) return ok_status();
  std::vector<CpuPlace> places;
  int next = 0;
  for (const topology::NumaNode& numa : graph().machine().numa) {
    std::vector<CpuRange> ranges;
    if (numa.cpus) {
      ranges = *numa.cpus;
    } else if (numa.cpu_count) {
      if (*numa.cpu_count > 0) ranges = {{next, next + *numa.cpu_count - 1}};
      next += *numa.cpu_count;
    } else if (!numa.memory_of_gpu) {
      return Error{"CPU manager static needs the CPUs of NUMA node " + std::to_string(numa.id) +
                   ", which no source tells"};
    }
    const topology::CpuManagerOptions& options = kubelet().cpu;
    if (!ranges.empty() && !tells_threads(ranges) && (options.full_pcpus_only || options.distribute_across_cores)) {
      return Error{
          "an option of the CPU manager needs to know which CPUs are threads of one core, which no source "
          "tells for NUMA node " +
          std::to_string(numa.id)};
    }
    add_places(ranges, numa.id, numa.socket.value_or(numa.id), places);
  }
  auto layout = topology::CpuLayout::build(places);
  if (!layout) return layout.error();
  empty_.cpus = *std::move(layout);
  empty_.reserved_cpus = spec_.reserved_cpus & empty_.cpus.all;
  empty_.shared_cpus = empty_.cpus.all;
  return ok_status();
}

Status NodeTopology::fill_memory() {
  empty_.memory_types = {"memory"};
  empty_.memory.resize(topology::kMaxNumaNodes);
  for (const topology::NumaNode& numa : graph().machine().numa) {
    if (!numa.memory) {
      if (!kubelet().memory_static) continue;
      return Error{"memory manager Static needs the memory of NUMA node " + std::to_string(numa.id) +
                   ", which no source tells"};
    }
    const auto id = static_cast<std::size_t>(numa.id);
    const Bytes reserved = id < spec_.reserved_memory.size() ? spec_.reserved_memory[id] : 0;
    topology::NumaMemory& memory = empty_.memory[id];
    memory.allocatable[0] = std::max<Bytes>(0, *numa.memory - reserved);
    memory.free = memory.allocatable;
    memory.group = topology::numa_bit(numa.id);
  }
  return ok_status();
}

NumaMask NodeTopology::numa_of_cpus(const topology::IndexSet& cpus) const {
  NumaMask nodes = 0;
  for (const topology::CpuGroup& numa : empty_.cpus.numas) {
    if (!(numa.cpus & cpus).empty()) nodes |= topology::numa_bit(numa.id);
  }
  return nodes;
}

int NodeTopology::least_numa_width_of_cpus(std::size_t count) const {
  std::vector<std::size_t> sizes;
  for (const topology::CpuGroup& numa : empty_.cpus.numas) sizes.push_back(numa.cpus.count());
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  int width = 0;
  for (std::size_t have = 0; have < count && width < static_cast<int>(sizes.size()); ++width) {
    have += sizes[static_cast<std::size_t>(width)];
  }
  return width;
}

int NodeTopology::numa_width(GpuMask gpus, NumaMask pinned) const {
  std::vector<NumaMask> each;
  NumaMask named = pinned;
  bool known = gpus != 0 || pinned != 0;
  for_each_bit(gpus, [&](int gpu) {
    each.push_back(numa_of(gpu));
    named |= each.back();
    known = known && each.back() != 0;
  });
  if (!known) return 0;
  return fewest_nodes(named, [&](NumaMask nodes) {
    if ((pinned & ~nodes) != 0) return false;
    return std::all_of(each.begin(), each.end(), [&](NumaMask near) { return (near & nodes) != 0; });
  });
}

int NodeTopology::least_numa_width(int count) const {
  NumaMask named = 0;
  for (const NumaMask near : numa_) named |= near;
  if (std::find(numa_.begin(), numa_.end(), NumaMask{0}) != numa_.end()) return 0;
  return fewest_nodes(named, [&](NumaMask nodes) {
    return std::count_if(numa_.begin(), numa_.end(), [&](NumaMask near) { return (near & nodes) != 0; }) >= count;
  });
}

bool NodeTopology::nvlinked(GpuMask gpus) const {
  if (gpus == 0) return true;
  GpuMask reached = gpus & (~gpus + 1);
  for (GpuMask before = 0; before != reached;) {
    before = reached;
    for_each_bit(before, [&](int gpu) { reached |= peers_[static_cast<std::size_t>(gpu)] & gpus; });
  }
  return reached == gpus;
}

bool NodeTopology::always_nvlinked(int count) const {
  if (count < 2) return true;
  // A graph of k vertices is connected when each has at least (k - 1) / 2 neighbours. That is enough, not needed.
  return std::all_of(peers_.begin(), peers_.end(),
                     [&](GpuMask peers) { return 2 * (gpus() - 1 - std::popcount(peers)) < count; });
}

Result<std::shared_ptr<const NodeTopology>> NodeTopologyTable::intern(const topology::Machine& machine,
                                                                      TopologySpec spec) {
  const auto graph = graphs_.intern(machine);
  if (!graph) return graph.error();
  auto family = std::find_if(families_.begin(), families_.end(), [&](const Family& f) { return f.graph == *graph; });
  if (family == families_.end()) {
    std::shared_ptr<const topology::DeviceSets> sets;
    if ((*graph)->gpu_count() <= topology::kMaxSetGpus) {
      auto made = topology::device_sets_of(**graph);
      if (!made) return made.error();
      sets = std::make_shared<const topology::DeviceSets>(*std::move(made));
    }
    families_.push_back({*graph, std::move(sets), {}});
    family = families_.end() - 1;
  }
  spec.graph = *graph;
  const auto known = std::find_if(family->members.begin(), family->members.end(),
                                  [&](const auto& member) { return member->spec() == spec; });
  if (known != family->members.end()) return *known;
  auto made = NodeTopology::build(std::move(spec), family->sets);
  if (made) family->members.push_back(*made);
  return made;
}

}  // namespace mortise::placement
