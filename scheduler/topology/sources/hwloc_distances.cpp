#include "scheduler/topology/sources/hwloc_distances.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "scheduler/base/quote.h"
#include "scheduler/topology/bandwidth.h"

namespace mortise::topology {
namespace {

constexpr std::uint64_t kMaxDistance = 255;

Status apply_latency(const HwlocDistances& distances, Machine& machine) {
  std::vector<int> ids;
  for (const std::string& object : distances.objects) {
    int id = 0;
    const auto [end, error] = std::from_chars(object.data(), object.data() + object.size(), id);
    if (error != std::errc() || end != object.data() + object.size()) {
      return Error{"NUMA distances name the object " + quote(object) + "; allowed: os_index of NUMA nodes"};
    }
    ids.push_back(id);
  }
  const auto known = [&](int id) {
    return std::any_of(machine.numa.begin(), machine.numa.end(), [&](const NumaNode& node) { return node.id == id; });
  };
  for (std::size_t a = 0; a < ids.size(); ++a) {
    if (!known(ids[a])) continue;
    NumaNode& node = numa_node(machine, ids[a]);
    for (std::size_t b = 0; b < ids.size(); ++b) {
      const std::uint64_t value = distances.at(a, b);
      if (!known(ids[b])) continue;
      if (value == 0 || value > kMaxDistance) {
        return Error{"NUMA distance " + std::to_string(value) + "; allowed: 1.." + std::to_string(kMaxDistance)};
      }
      node.distances.push_back({ids[b], static_cast<int>(value)});
    }
    std::sort(node.distances.begin(), node.distances.end());
  }
  return ok_status();
}

// The GPU at each object, or none: then it is an NVSwitch.
using ObjectGpus = std::vector<std::optional<int>>;

// hwloc gives the sum of the links of a pair in MB/s.
int links_in(std::uint64_t mb_per_s, const Gpu& gpu) {
  const GpuModel* model = find_gpu_model(gpu.model);
  const std::int64_t known = model != nullptr ? model->nvlink_mb_per_s : 0;
  const auto each = static_cast<std::uint64_t>(known > 0 ? known : kAssumedModel.nvlink_mb_per_s);
  if (mb_per_s == 0) return 0;
  return static_cast<int>(std::clamp<std::uint64_t>((mb_per_s + each / 2) / each, 1, kMaxNvLinks));
}

// Which fabric of switches each object belongs to; -1: none.
std::vector<int> fabrics(const HwlocDistances& distances, const ObjectGpus& gpu_at) {
  const std::size_t count = distances.objects.size();
  std::vector<int> fabric(count, -1);
  int next = 0;
  for (std::size_t start = 0; start < count; ++start) {
    if (gpu_at[start] || fabric[start] >= 0) continue;
    std::vector<std::size_t> open = {start};
    fabric[start] = next;
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (std::size_t other = 0; other < count; ++other) {
        const bool joined = distances.at(at, other) > 0 || distances.at(other, at) > 0;
        if (other == at || !joined || fabric[other] >= 0) continue;
        fabric[other] = next;
        if (!gpu_at[other]) open.push_back(other);
      }
    }
    ++next;
  }
  return fabric;
}

GpuLink& link_between(Machine& machine, int a, int b) {
  GpuLink wanted;
  wanted.a = std::min(a, b);
  wanted.b = std::max(a, b);
  const auto place =
      std::lower_bound(machine.gpu_links.begin(), machine.gpu_links.end(), wanted,
                       [](const GpuLink& x, const GpuLink& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
  if (place != machine.gpu_links.end() && place->a == wanted.a && place->b == wanted.b) return *place;
  return *machine.gpu_links.insert(place, wanted);
}

void apply_nvlinks(const HwlocDistances& distances, const std::map<std::string, int>& gpu_of_object, Reading& reading) {
  Machine& machine = reading.machine;
  const std::size_t count = distances.objects.size();
  ObjectGpus gpu_at;
  for (const std::string& object : distances.objects) {
    const auto found = gpu_of_object.find(object.substr(object.find(':') + 1));
    const bool os_device = object.find(':') == std::string::npos || object.starts_with("OSDev:");
    gpu_at.push_back(os_device && found != gpu_of_object.end() ? std::optional(found->second) : std::nullopt);
  }
  const std::vector<int> fabric = fabrics(distances, gpu_at);
  if (std::any_of(fabric.begin(), fabric.end(), [](int id) { return id > 0; })) {
    reading.notes.push_back("the file shows no links between groups of NVSwitches: their GPUs count as apart");
  }
  std::vector<int> ports(count, 0);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count && gpu_at[a]; ++b) {
      if (!gpu_at[b]) ports[a] += links_in(distances.at(a, b), machine.gpus[static_cast<std::size_t>(*gpu_at[a])]);
    }
  }
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      if (!gpu_at[a] || !gpu_at[b] || *gpu_at[a] == *gpu_at[b]) continue;
      const std::uint64_t direct = std::min(distances.at(a, b), distances.at(b, a));
      const bool same_fabric = fabric[a] >= 0 && fabric[a] == fabric[b];
      if (direct == 0 && !same_fabric) continue;
      GpuLink& link = link_between(machine, *gpu_at[a], *gpu_at[b]);
      link.switched = direct == 0;
      link.nvlinks = direct > 0 ? links_in(direct, machine.gpus[static_cast<std::size_t>(*gpu_at[a])])
                                : std::min({ports[a], ports[b], kMaxNvLinks});
    }
  }
}

}  // namespace

Status apply_distances(const HwlocDistances& distances, const std::map<std::string, int>& gpu_of_object,
                       Reading& reading) {
  if (distances.name == "NUMALatency") return apply_latency(distances, reading.machine);
  if (distances.name == "NVLinkBandwidth") {
    apply_nvlinks(distances, gpu_of_object, reading);
  } else if (distances.name == "XGMIBandwidth") {
    reading.notes.push_back("XGMI links are left out: only NVLinks and PCIe are known here");
  }
  return ok_status();
}

}  // namespace mortise::topology
