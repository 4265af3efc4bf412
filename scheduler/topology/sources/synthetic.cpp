#include "scheduler/topology/sources/synthetic.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "scheduler/base/quantity.h"
#include "scheduler/base/quote.h"
#include "scheduler/topology/bandwidth.h"
#include "scheduler/topology/numa_mask.h"
#include "scheduler/topology/sources/text_lines.h"

namespace mortise::topology {
namespace {

constexpr std::array<std::string_view, 16> kNames = {"socket", "numa",     "bridge", "cascade",  "switch", "gpu",
                                                     "nic",    "cpu",      "memory", "distance", "gpumem", "model",
                                                     "nvlink", "nvswitch", "policy", "scope"};
constexpr int kMaxCount = 1024;
constexpr int kMaxPlaces = 1024;
constexpr int kLocalDistance = 10;

struct DeviceRun {
  int count = 0;
  int place = 0;  // position of the innermost level
};

struct NvlinkPair {
  int a = 0;
  int b = 0;
  int links = 1;
};

// What the items say, before anything is built.
struct Plan {
  bool sockets_named = false;
  int sockets = 1;
  int numa = 1;
  int bridges = 1;
  int cascades = 0;
  int switches = 0;
  int cores = 0;    // per NUMA node
  int threads = 1;  // per core
  std::optional<Bytes> memory;
  std::optional<Bytes> gpu_memory;
  std::vector<int> distances;  // within a socket, then across; one: across all
  std::string model;
  std::optional<int> port_links;  // nvlink:N
  int all_links = 0;              // nvlink:all*N
  std::vector<NvlinkPair> pairs;
  int fabrics = 0;
  KubeletFacts kubelet;

  int numa_nodes() const { return sockets * numa; }
  int places() const { return numa_nodes() * bridges * std::max(cascades, 1) * std::max(switches, 1); }
};

std::optional<int> number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

class SyntheticReader {
 public:
  Result<Machine> read(std::string_view text) {
    if (const Status status = split_items(text); !status) return status.error();
    if (const Status status = read_levels(); !status) return status.error();
    if (const Status status = read_numa_items(); !status) return status.error();
    if (const Status status = read_kubelet(); !status) return status.error();
    build_numa();
    build_bridges();
    if (const Status status = build_devices(); !status) return status.error();
    if (const Status status = read_nvlinks(); !status) return status.error();
    if (const Status status = build_nvlinks(); !status) return status.error();
    if (const Status status = check(machine_); !status) return status.error();
    return std::move(machine_);
  }

 private:
  static Error bad(std::string_view name, std::string_view value, const std::string& allowed) {
    return Error{std::string(name) + " is " + quote(value) + "; allowed: " + allowed};
  }

  Status split_items(std::string_view text) {
    for (const std::string_view item : words(text)) {
      const std::size_t colon = item.find(':');
      const std::string_view name = item.substr(0, colon);
      if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
        std::string known;
        for (const std::string_view known_name : kNames) known.append(known.empty() ? "" : ", ").append(known_name);
        return Error{"unknown item " + quote(name) + "; known: " + known};
      }
      if (colon == std::string_view::npos || colon + 1 == item.size())
        return Error{"item " + quote(item) + " has no value"};
      if (!items_.emplace(name, item.substr(colon + 1)).second) return Error{"item " + quote(name) + " twice"};
    }
    return ok_status();
  }

  std::optional<std::string_view> item(std::string_view name) const {
    const auto found = items_.find(name);
    return found == items_.end() ? std::nullopt : std::optional(found->second);
  }

  Status read_count(std::string_view name, int& value) {
    const auto text = item(name);
    if (!text) return ok_status();
    const auto count = number(*text, 1, kMaxCount);
    if (!count) return bad(name, *text, "1.." + std::to_string(kMaxCount));
    value = *count;
    return ok_status();
  }

  Status read_levels() {
    plan_.sockets_named = item("socket").has_value();
    const std::pair<std::string_view, int*> levels[] = {{"socket", &plan_.sockets},  {"numa", &plan_.numa},
                                                        {"bridge", &plan_.bridges},  {"cascade", &plan_.cascades},
                                                        {"switch", &plan_.switches}, {"nvswitch", &plan_.fabrics}};
    std::int64_t places = 1;
    for (const auto& [name, value] : levels) {
      if (const Status status = read_count(name, *value); !status) return status;
      if (name != "nvswitch") places *= std::max(*value, 1);
      if (places > kMaxPlaces) return Error{"more than " + std::to_string(kMaxPlaces) + " places for devices"};
    }
    if (plan_.numa_nodes() > kMaxNumaNodes) return Error{"more than " + std::to_string(kMaxNumaNodes) + " NUMA nodes"};
    return ok_status();
  }

  Status read_bytes(std::string_view name, std::optional<Bytes>& value) {
    const auto text = item(name);
    if (!text) return ok_status();
    const auto quantity = Quantity::parse(*text);
    const auto whole = quantity ? quantity->whole() : Result<std::int64_t>(quantity.error());
    if (!whole || *whole < 1) return bad(name, *text, "whole bytes, like 256Gi");
    value = *whole;
    return ok_status();
  }

  Status read_numa_items() {
    if (const Status status = read_bytes("memory", plan_.memory); !status) return status;
    if (const Status status = read_bytes("gpumem", plan_.gpu_memory); !status) return status;
    if (const auto text = item("cpu")) {
      const std::size_t times = text->find('x');
      const auto cores = number(text->substr(0, times), 1, kMaxCount);
      const auto threads = times == std::string_view::npos ? std::optional(1) : number(text->substr(times + 1), 1, 8);
      if (!cores || !threads) return bad("cpu", *text, "CORES or CORESxTHREADS of a NUMA node, like 16x2");
      plan_.cores = *cores;
      plan_.threads = *threads;
    }
    if (const auto text = item("distance")) {
      for (const std::string_view part : split(*text, ',')) {
        const auto value = number(part, 1, 255);
        if (!value || plan_.distances.size() == 2)
          return bad("distance", *text, "ACROSS or IN-SOCKET,ACROSS, like 12,32");
        plan_.distances.push_back(*value);
      }
    }
    if (const auto text = item("model")) plan_.model = *text;
    return ok_status();
  }

  Status read_kubelet() {
    if (const auto text = item("policy")) {
      const auto policy = parse_topology_policy(*text);
      if (!policy) return policy.error();
      machine_.kubelet.policy = *policy;
    }
    if (const auto text = item("scope")) {
      const auto scope = parse_topology_scope(*text);
      if (!scope) return scope.error();
      machine_.kubelet.scope = *scope;
    }
    return ok_status();
  }

  // CPUs are numbered node after node, second threads after all first ones, as Linux on x86 does.
  void build_numa() {
    const int cores = plan_.cores * plan_.numa_nodes();
    for (int id = 0; id < plan_.numa_nodes(); ++id) {
      NumaNode node;
      node.id = id;
      if (plan_.sockets_named) node.socket = id / plan_.numa;
      if (plan_.cores > 0) {
        CpuRanges cpus;
        for (int thread = 0; thread < plan_.threads; ++thread) {
          const int first = thread * cores + id * plan_.cores;
          cpus.push_back({first, first + plan_.cores - 1});
        }
        node.cpus = joined(std::move(cpus));
      }
      node.memory = plan_.memory;
      for (int to = 0; to < plan_.numa_nodes() && !plan_.distances.empty(); ++to) {
        const bool near = id / plan_.numa == to / plan_.numa;
        const int other = near ? plan_.distances.front() : plan_.distances.back();
        node.distances.push_back({to, to == id ? kLocalDistance : other});
      }
      machine_.numa.push_back(std::move(node));
    }
  }

  int add_bridge(BridgeKind kind, int parent, int numa) {
    Bridge bridge;
    bridge.kind = kind;
    bridge.parent = parent;
    if (parent < 0) bridge.numa = {numa};
    machine_.bridges.push_back(std::move(bridge));
    return static_cast<int>(machine_.bridges.size()) - 1;
  }

  void build_bridges() {
    for (int host = 0; host < plan_.numa_nodes() * plan_.bridges; ++host) {
      const int root = add_bridge(BridgeKind::kHostBridge, -1, host / plan_.bridges);
      for (int c = 0; c < std::max(plan_.cascades, 1); ++c) {
        const int above = plan_.cascades > 0 ? add_bridge(BridgeKind::kCascade, root, 0) : root;
        if (plan_.switches == 0) places_.push_back(above);
        for (int s = 0; s < plan_.switches; ++s) places_.push_back(add_bridge(BridgeKind::kSwitch, above, 0));
      }
    }
  }

  Result<std::vector<DeviceRun>> read_runs(std::string_view name) const {
    std::vector<DeviceRun> runs;
    const auto text = item(name);
    if (!text) return runs;
    const std::string allowed = "COUNT for each place, or COUNT@PLACE,... with places 0.." +
                                std::to_string(plan_.places() - 1) + " and counts up to " + std::to_string(kMaxCount);
    if (const auto each = number(*text, 0, kMaxCount)) {
      for (int place = 0; place < plan_.places(); ++place) runs.push_back({*each, place});
      return runs;
    }
    int next = 0;
    for (const std::string_view part : split(*text, ',')) {
      const std::size_t at = part.find('@');
      const auto count = number(part.substr(0, at), 0, kMaxCount);
      const auto place =
          at == std::string_view::npos ? std::optional(next) : number(part.substr(at + 1), 0, kMaxPlaces);
      if (!count || !place || *place >= plan_.places()) return bad(name, *text, allowed);
      runs.push_back({*count, *place});
      next = *place + 1;
    }
    return runs;
  }

  std::vector<int> numa_at(int place) const { return {place / (plan_.places() / plan_.numa_nodes())}; }

  Status build_devices() {
    const auto gpus = read_runs("gpu");
    if (!gpus) return gpus.error();
    for (const DeviceRun& run : *gpus) {
      for (int i = 0; i < run.count; ++i) {
        if (machine_.gpus.size() == kMaxGpus) return Error{"more than " + std::to_string(kMaxGpus) + " GPUs"};
        Gpu gpu;
        gpu.index = static_cast<int>(machine_.gpus.size());
        gpu.model = plan_.model;
        gpu.numa = numa_at(run.place);
        gpu.cpus = machine_.numa[static_cast<std::size_t>(gpu.numa.front())].cpus;
        gpu.bridge = places_[static_cast<std::size_t>(run.place)];
        machine_.gpus.push_back(std::move(gpu));
      }
    }
    const auto nics = read_runs("nic");
    if (!nics) return nics.error();
    for (const DeviceRun& run : *nics) {
      for (int i = 0; i < run.count; ++i) {
        if (machine_.nics.size() == kMaxNics) return Error{"more than " + std::to_string(kMaxNics) + " NICs"};
        Nic nic;
        nic.name = "NIC" + std::to_string(machine_.nics.size());
        nic.numa = numa_at(run.place);
        nic.bridge = places_[static_cast<std::size_t>(run.place)];
        machine_.nics.push_back(std::move(nic));
      }
    }
    return build_gpu_memory();
  }

  // Nodes of GPU memory come after those of CPUs.
  Status build_gpu_memory() {
    if (!plan_.gpu_memory) return ok_status();
    if (machine_.numa.size() + machine_.gpus.size() > kMaxNumaNodes) {
      return Error{"more than " + std::to_string(kMaxNumaNodes) + " NUMA nodes with those of the GPUs"};
    }
    for (const Gpu& gpu : machine_.gpus) {
      NumaNode node;
      node.id = static_cast<int>(machine_.numa.size());
      node.cpus = CpuRanges{};
      node.memory = plan_.gpu_memory;
      node.memory_of_gpu = gpu.index;
      machine_.numa.push_back(std::move(node));
    }
    return ok_status();
  }

  Status read_nvlinks() {
    const auto text = item("nvlink");
    if (!text) return ok_status();
    const std::string allowed =
        "N with nvswitch, all*N, or pairs A-B*N,... of GPUs with N up to " + std::to_string(kMaxNvLinks);
    if (const auto links = number(*text, 1, kMaxNvLinks); links && plan_.fabrics > 0) {
      plan_.port_links = *links;
      return ok_status();
    }
    const int last = static_cast<int>(machine_.gpus.size()) - 1;
    for (const std::string_view part : split(*text, ',')) {
      const std::size_t times = part.find('*');
      const auto links =
          times == std::string_view::npos ? std::optional(1) : number(part.substr(times + 1), 1, kMaxNvLinks);
      const std::string_view ends = part.substr(0, times);
      const std::size_t dash = ends.find('-');
      if (!links) return bad("nvlink", *text, allowed);
      if (ends == "all") {
        plan_.all_links = *links;
        continue;
      }
      const auto a = number(ends.substr(0, dash), 0, last);
      const auto b = dash == std::string_view::npos ? std::nullopt : number(ends.substr(dash + 1), 0, last);
      if (!a || !b || *a == *b) return bad("nvlink", *text, allowed);
      plan_.pairs.push_back({std::min(*a, *b), std::max(*a, *b), *links});
    }
    return ok_status();
  }

  Status build_nvlinks() {
    std::map<std::pair<int, int>, GpuLink> links;
    const int gpus = static_cast<int>(machine_.gpus.size());
    const auto add = [&](int a, int b, int count, bool switched) {
      return links.emplace(std::pair(a, b), GpuLink{a, b, LinkClass::kUnknown, count, switched}).second;
    };
    for (const NvlinkPair& pair : plan_.pairs) {
      if (!add(pair.a, pair.b, pair.links, false)) {
        return Error{"nvlink has the pair " + std::to_string(pair.a) + "-" + std::to_string(pair.b) + " twice"};
      }
    }
    if (plan_.fabrics > 0 && (plan_.all_links > 0 || !plan_.pairs.empty())) {
      return Error{"nvlink pairs beside nvswitch; allowed: nvlink:N with nvswitch"};
    }
    for (int a = 0; a < gpus && plan_.all_links > 0; ++a) {
      for (int b = a + 1; b < gpus; ++b) add(a, b, plan_.all_links, false);
    }
    if (plan_.fabrics > 0) {
      if (gpus % plan_.fabrics != 0) return Error{"nvswitch: the GPUs do not divide evenly among the switches"};
      const GpuModel* model = find_gpu_model(plan_.model);
      const int ports = plan_.port_links.value_or(model != nullptr ? model->nvlinks : 1);
      if (ports == 0) return Error{"nvswitch: model " + quote(plan_.model) + " has no NVLinks"};
      const int each = std::max(gpus / plan_.fabrics, 1);
      for (int a = 0; a < gpus; ++a) {
        for (int b = a + 1; b < gpus && b / each == a / each; ++b) add(a, b, ports, true);
      }
    }
    for (const auto& [pair, link] : links) machine_.gpu_links.push_back(link);
    return ok_status();
  }

  std::map<std::string_view, std::string_view> items_;
  Plan plan_;
  Machine machine_;
  std::vector<int> places_;  // bridges of the innermost level
};

}  // namespace

bool looks_like_synthetic(std::string_view text) {
  const std::vector<std::string_view> parts = words(text.substr(0, 4096));
  if (parts.empty()) return false;
  const std::string_view name = parts.front().substr(0, parts.front().find(':'));
  return parts.front().size() > name.size() && std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Result<Reading> read_synthetic(std::string_view text, std::string_view file) {
  const std::size_t line_end = text.find_last_not_of(" \t\r\n");
  const std::string_view line = text.substr(0, line_end == std::string_view::npos ? 0 : line_end + 1);
  if (line.find('\n') != std::string_view::npos) return Error{std::string(file) + ":2: more than one line"};
  auto machine = SyntheticReader().read(line);
  if (!machine) return Error{std::string(file) + ":1: " + machine.message()};
  Reading reading;
  reading.machine = *std::move(machine);
  return reading;
}

}  // namespace mortise::topology
