#include "scheduler/topology/sources/hwloc_xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "scheduler/base/quote.h"
#include "scheduler/topology/numa_mask.h"
#include "scheduler/topology/sources/hwloc_distances.h"
#include "scheduler/topology/sources/hwloc_sets.h"
#include "scheduler/topology/sources/text_lines.h"

namespace mortise::topology {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxObjects = 4096;  // of one table of distances

// Bits of osdev_type in version 3; version 2 counts kinds instead.
struct DeviceKind {
  unsigned version2;
  unsigned version3;
};
constexpr DeviceKind kNetwork = {2, 1U << 4};
constexpr DeviceKind kOpenFabrics = {3, 1U << 5};

// Libraries that describe GPUs, the one whose numbers nvidia-smi and kubelet share first.
constexpr std::array<std::string_view, 5> kBackends = {"nvml", "cuda", "rsmi", "ze", "opencl"};

struct FoundGpu {
  Gpu gpu;
  std::size_t backend = kBackends.size();
  std::vector<std::string> objects;  // gp_index of its OS devices
};

// A bridge on the way down; it gets its place once a device below asks for it.
struct OpenBridge {
  Bridge bridge;
  std::optional<int> place;
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string info_of(const pugi::xml_node& object, std::string_view name) {
  for (const pugi::xml_node& info : object.children("info")) {
    if (name == info.attribute("name").value()) return info.attribute("value").value();
  }
  return {};
}

class HwlocReader {
 public:
  HwlocReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<Reading> read() {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed) return error_at(parsed.offset, std::string("not XML: ") + parsed.description());
    const pugi::xml_node topology = document.child("topology");
    if (!topology) return error_at(0, "no <topology>; allowed: what lstopo --of xml prints");
    const std::string_view version = topology.attribute("version").value();
    major_ = number_of(version.substr(0, version.find('.'))).value_or(1) == 3 ? 3 : 2;
    if (!version.starts_with("2.") && !version.starts_with("3.")) {
      return error_at(topology.offset_debug(), "hwloc version " + quote(version) + "; allowed: 2.x, 3.x");
    }
    walk(topology, Place{});
    if (!problem_) fill_gpus();
    if (!problem_) read_distances(topology);
    if (problem_) return *problem_;
    fill_gpu_memory();
    if (const Status status = check(reading_.machine); !status) return error_at(0, status.message());
    return std::move(reading_);
  }

 private:
  // Where the walk stands.
  struct Place {
    int depth = 0;
    std::optional<int> socket;
    std::vector<int> numa;  // of the nearest object that names some
    std::vector<OpenBridge*> bridges;
    std::string bus_id;  // of the PCI device above
  };

  Error error_at(std::ptrdiff_t offset, const std::string& what) const {
    const auto end = text_.begin() + std::clamp<std::ptrdiff_t>(offset, 0, std::ssize(text_));
    const auto line = 1 + std::count(text_.begin(), end, '\n');
    return Error{std::string(file_) + ":" + std::to_string(line) + ": " + what};
  }

  void fail(const pugi::xml_node& node, const std::string& what) {
    if (!problem_) problem_ = error_at(node.offset_debug(), what);
  }

  std::optional<int> id_of(const pugi::xml_node& object) {
    const auto id = number_of(object.attribute("os_index").value());
    return id && *id <= static_cast<std::uint64_t>(kMaxCpuId) ? std::optional(static_cast<int>(*id)) : std::nullopt;
  }

  void walk(const pugi::xml_node& parent, const Place& place) {
    if (place.depth > kMaxDepth) return fail(parent, "nested deeper than " + std::to_string(kMaxDepth) + " objects");
    for (const pugi::xml_node& object : parent.children("object")) {
      if (problem_) return;
      Place inside = place;
      ++inside.depth;
      const std::string_view type = object.attribute("type").value();
      OpenBridge bridge;
      if (type == "Machine") reading_.node = info_of(object, "HostName");
      if (type == "Package") inside.socket = id_of(object);
      if (type == "NUMANode") {
        add_numa(object, inside);
      } else if (type == "Bridge") {
        open_bridge(object, bridge, inside);
      } else if (type == "PCIDev") {
        inside.bus_id = object.attribute("pci_busid").value();
        add_devices(object, inside);
      } else if (const pugi::xml_attribute nodeset = object.attribute("nodeset")) {
        enter_nodeset(object, nodeset.value(), inside);
      }
      walk(object, inside);
    }
  }

  void enter_nodeset(const pugi::xml_node& object, std::string_view text, Place& place) {
    const auto set = parse_hwloc_set(text);
    if (!set) return fail(object, "nodeset " + quote(text) + " is no bitmap");
    place.numa = members(*set);
    std::erase_if(place.numa, [](int id) { return id >= kMaxNumaNodes; });
    // A device below the whole of a machine with several nodes is near none of them.
    if (object.attribute("type").value() == std::string_view("Machine") && place.numa.size() > 1) place.numa.clear();
  }

  void add_numa(const pugi::xml_node& object, const Place& place) {
    const auto id = id_of(object);
    if (!id) return fail(object, "a NUMA node without os_index");
    if (*id >= kMaxNumaNodes) {
      reading_.notes.push_back("NUMA node " + std::to_string(*id) + " is left out: ids end at " +
                               std::to_string(kMaxNumaNodes - 1));
      return;
    }
    const std::string_view cpuset = object.attribute("cpuset").value();
    auto cpus = parse_hwloc_set(cpuset);
    if (!cpus) return fail(object, "cpuset " + quote(cpuset) + " is no bitmap");
    NumaNode& node = numa_node(reading_.machine, *id);
    if (node.cpus) return fail(object, "a second NUMA node " + std::to_string(*id));
    node.cpus = *std::move(cpus);
    node.socket = place.socket;
    const auto memory = number_of(object.attribute("local_memory").value());
    if (memory && *memory <= static_cast<std::uint64_t>(INT64_MAX)) node.memory = static_cast<Bytes>(*memory);
    if (object.attribute("subtype").value() == std::string_view("GPUMemory")) {
      memory_nodes_.emplace(*id, info_of(object, "PCIBusID"));
    }
  }

  void open_bridge(const pugi::xml_node& object, OpenBridge& bridge, Place& place) {
    const bool host = std::string_view(object.attribute("bridge_type").value()) == "0-1";
    if (host != place.bridges.empty())
      return fail(object, host ? "a host bridge below a bridge" : "a bridge without a host bridge");
    bridge.bridge.kind = host ? BridgeKind::kHostBridge : BridgeKind::kSwitch;
    if (host) bridge.bridge.numa = place.numa;
    bridge.bridge.bus_id = object.attribute("pci_busid").value();
    place.bridges.push_back(&bridge);
  }

  std::optional<int> bridge_at(const Place& place) {
    std::optional<int> parent;
    for (OpenBridge* open : place.bridges) {
      if (!open->place) {
        open->bridge.parent = parent.value_or(-1);
        open->place = static_cast<int>(reading_.machine.bridges.size());
        reading_.machine.bridges.push_back(open->bridge);
      }
      parent = open->place;
    }
    return parent;
  }

  bool is_kind(const pugi::xml_node& device, DeviceKind kind) const {
    const auto type = number_of(device.attribute("osdev_type").value()).value_or(0);
    return major_ >= 3 ? (type & kind.version3) != 0 : type == kind.version2;
  }

  void add_devices(const pugi::xml_node& pci, const Place& place) {
    FoundGpu found;
    bool has_fabric = false;
    for (const pugi::xml_node& device : pci.children("object")) {
      if (device.attribute("type").value() != std::string_view("OSDev")) continue;
      describe_gpu(device, found);
      has_fabric = has_fabric || is_kind(device, kOpenFabrics);
    }
    if (found.backend < kBackends.size()) {
      found.gpu.bus_id = place.bus_id;
      found.gpu.numa = place.numa;
      found.gpu.bridge = bridge_at(place);
      gpus_.push_back(std::move(found));
    }
    for (const pugi::xml_node& device : pci.children("object")) {
      // An adapter with a verbs device is known by that name.
      if (is_kind(device, has_fabric ? kOpenFabrics : kNetwork)) add_nic(device, place);
    }
  }

  // Several libraries may describe one GPU; the first of kBackends names and numbers it.
  void describe_gpu(const pugi::xml_node& device, FoundGpu& found) {
    const std::string_view name = device.attribute("name").value();
    const std::string model = info_of(device, "GPUModel");
    const auto* backend =
        std::find_if(kBackends.begin(), kBackends.end(), [&](std::string_view stem) { return name.starts_with(stem); });
    if (backend == kBackends.end() || model.empty()) return;
    found.objects.emplace_back(device.attribute("gp_index").value());
    for (const std::string_view key : {"NVIDIAUUID", "AMDUUID", "LevelZeroUUID"}) {
      if (found.gpu.uuid.empty()) found.gpu.uuid = info_of(device, key);
    }
    const auto rank = static_cast<std::size_t>(backend - kBackends.begin());
    if (rank >= found.backend) return;
    // "nvml3", "opencl0d3": the number stands at the end.
    const auto index = number_of(name.substr(name.find_last_not_of("0123456789") + 1));
    if (!index || *index > static_cast<std::uint64_t>(kMaxCpuId)) return;
    found.backend = rank;
    found.gpu.index = static_cast<int>(*index);
    found.gpu.model = model;
  }

  void add_nic(const pugi::xml_node& device, const Place& place) {
    Nic nic;
    nic.name = device.attribute("name").value();
    nic.device = nic.name;
    nic.bus_id = place.bus_id;
    nic.numa = place.numa;
    nic.bridge = bridge_at(place);
    reading_.machine.nics.push_back(std::move(nic));
  }

  void fill_gpus() {
    const auto less = [](const FoundGpu& a, const FoundGpu& b) { return a.gpu.index < b.gpu.index; };
    std::stable_sort(gpus_.begin(), gpus_.end(), less);
    const auto same = [](const FoundGpu& a, const FoundGpu& b) { return a.gpu.index == b.gpu.index; };
    const bool renumber = std::adjacent_find(gpus_.begin(), gpus_.end(), same) != gpus_.end();
    if (renumber)
      reading_.notes.push_back("GPUs of several libraries share numbers: numbered in the order of the file");
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (renumber) gpus_[i].gpu.index = static_cast<int>(i);
      for (const std::string& object : gpus_[i].objects) gpu_of_object_.emplace(object, static_cast<int>(i));
      reading_.machine.gpus.push_back(std::move(gpus_[i].gpu));
    }
  }

  void fill_gpu_memory() {
    for (const auto& [id, bus_id] : memory_nodes_) {
      for (const Gpu& gpu : reading_.machine.gpus) {
        if (!bus_id.empty() && gpu.bus_id == bus_id) numa_node(reading_.machine, id).memory_of_gpu = gpu.index;
      }
    }
  }

  void read_distances(const pugi::xml_node& topology) {
    for (const pugi::xml_node& node : topology.children()) {
      const std::string_view element = node.name();
      if (element != "distances2" && element != "distances2hetero") continue;
      HwlocDistances distances;
      distances.name = node.attribute("name").value();
      for (const pugi::xml_node& part : node.children("indexes")) {
        for (const std::string_view word : words(part.child_value())) distances.objects.emplace_back(word);
      }
      for (const pugi::xml_node& part : node.children("u64values")) {
        for (const std::string_view word : words(part.child_value())) {
          const auto value = number_of(word);
          if (!value) return fail(node, "distances have the value " + quote(word) + "; allowed: whole numbers");
          distances.values.push_back(*value);
        }
      }
      const std::size_t count = distances.objects.size();
      if (count > kMaxObjects || distances.values.size() != count * count) {
        return fail(node, "distances of " + std::to_string(count) + " objects have " +
                              std::to_string(distances.values.size()) + " values");
      }
      const Status applied = apply_distances(distances, gpu_of_object_, reading_);
      if (!applied) return fail(node, applied.message());
    }
  }

  std::string_view text_;
  std::string_view file_;
  int major_ = 2;
  std::optional<Error> problem_;
  std::vector<FoundGpu> gpus_;
  std::map<std::string, int> gpu_of_object_;
  std::map<int, std::string> memory_nodes_;  // id -> PCI address of the GPU, where told
  Reading reading_;
};

}  // namespace

bool looks_like_hwloc_xml(std::string_view text) {
  return text.substr(0, 4096).find("<topology") != std::string_view::npos;
}

Result<Reading> read_hwloc_xml(std::string_view text, std::string_view file) {
  return HwlocReader(text, file).read();
}

}  // namespace mortise::topology
