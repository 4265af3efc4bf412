#include "scheduler/topology/machine_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "scheduler/base/quote.h"
#include "scheduler/topology/json_fields.h"
#include "scheduler/topology/numa_mask.h"
#include "scheduler/topology/sources/json_document.h"

namespace mortise::topology {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int kMaxIndex = 65535;
constexpr std::array<std::string_view, 3> kBridgeKinds = {"host-bridge", "switch", "cascade"};

void put_text(OrderedJson& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

template <class T>
void put(OrderedJson& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

OrderedJson gpu_json(const Gpu& gpu) {
  OrderedJson json = {{"index", gpu.index}};
  put_text(json, "model", gpu.model);
  put_text(json, "uuid", gpu.uuid);
  put_text(json, "bus_id", gpu.bus_id);
  json["numa"] = numa_json(gpu.numa);
  json["cpus"] = gpu.cpus ? OrderedJson(to_text(*gpu.cpus)) : OrderedJson();
  put(json, "bridge", gpu.bridge);
  return json;
}

OrderedJson nic_json(const Nic& nic) {
  OrderedJson json = {{"name", nic.name}};
  put_text(json, "device", nic.device);
  put_text(json, "bus_id", nic.bus_id);
  if (!nic.numa.empty()) json["numa"] = numa_json(nic.numa);
  put(json, "bridge", nic.bridge);
  return json;
}

OrderedJson numa_node_json(const NumaNode& node) {
  OrderedJson json = {{"id", node.id}};
  put(json, "socket", node.socket);
  if (node.cpus) json["cpus"] = to_text(*node.cpus);
  put(json, "cpu_count", node.cpu_count);
  put(json, "memory", node.memory);
  for (const NumaDistance& distance : node.distances) {
    json["distances"].push_back({{"to", distance.to}, {"value", distance.value}});
  }
  put(json, "memory_of_gpu", node.memory_of_gpu);
  return json;
}

OrderedJson link_json(const Machine& machine, const GpuLink& link) {
  OrderedJson json = {{"a", machine.gpus[static_cast<std::size_t>(link.a)].index},
                      {"b", machine.gpus[static_cast<std::size_t>(link.b)].index}};
  const std::string pcie(to_text(link.pcie));
  const std::string name = link.nvlinks > 0 ? "NV" + std::to_string(link.nvlinks) : pcie;
  json["class"] = name.empty() ? OrderedJson() : OrderedJson(name);
  json["nvlinks"] = link.nvlinks;
  put(json, "switched", link.switched);
  if (link.nvlinks > 0) put_text(json, "pcie", pcie);
  return json;
}

OrderedJson kubelet_json(const KubeletFacts& kubelet) {
  OrderedJson json;
  if (kubelet.policy) json["policy"] = to_text(*kubelet.policy);
  if (kubelet.scope) json["scope"] = *kubelet.scope == TopologyScope::kPod ? "pod" : "container";
  put(json, "max_numa_nodes", kubelet.max_numa_nodes);
  return json;
}

class MachineReader {
 public:
  Result<Machine> read(const Json& json) {
    fields_.object(json, "topology",
                   {"gpus", "nics", "links", "nic_links", "numa_nodes", "bridges", "kubelet", "gpus_numbered", "best",
                    "nvlink_domains", "nearest_nics"});
    if (!fields_.failed()) read_parts(json);
    if (fields_.failed()) return fields_.error();
    sort_parts();
    add_named_numa(machine_);
    if (const Status status = check(machine_); !status) return status.error();
    return std::move(machine_);
  }

 private:
  void read_parts(const Json& json) {
    each(json, "numa_nodes", [&](const Json& item, const std::string& where) { read_numa(item, where); });
    each(json, "bridges", [&](const Json& item, const std::string& where) { read_bridge(item, where); });
    each(json, "gpus", [&](const Json& item, const std::string& where) { read_gpu(item, where); });
    sort_gpus();
    each(json, "nics", [&](const Json& item, const std::string& where) { read_nic(item, where); });
    each(json, "links", [&](const Json& item, const std::string& where) { read_link(item, where); });
    each(json, "nic_links", [&](const Json& item, const std::string& where) { read_nic_link(item, where); });
    if (const Json* kubelet = JsonFields::find(json, "kubelet")) read_kubelet(*kubelet);
    if (const Json* numbered = JsonFields::find(json, "gpus_numbered")) {
      machine_.gpus_numbered = fields_.flag(*numbered, "gpus_numbered");
    }
  }

  template <class Read>
  void each(const Json& json, const char* key, Read&& read) {
    const Json* list = JsonFields::find(json, key);
    if (list == nullptr) return;
    if (!list->is_array()) return fields_.fail(key, "is no list");
    for (std::size_t i = 0; i < list->size() && !fields_.failed(); ++i) {
      read((*list)[i], std::string(key) + "[" + std::to_string(i) + "]");
    }
  }

  std::string text(const Json& json, const char* key, const std::string& where) {
    const Json* value = JsonFields::find(json, key);
    return value == nullptr ? std::string() : fields_.text(*value, where + "." + key);
  }

  std::optional<int> number(const Json& json, const char* key, const std::string& where, std::int64_t most) {
    const Json* value = JsonFields::find(json, key);
    if (value == nullptr) return std::nullopt;
    return static_cast<int>(fields_.integer(*value, where + "." + key, 0, most));
  }

  int required(const Json& json, const char* key, const std::string& where) {
    const auto value = number(json, key, where, kMaxIndex);
    if (!value) fields_.fail(where + "." + key, "is missing");
    return value.value_or(0);
  }

  std::optional<CpuRanges> cpus(const Json& json, const std::string& where) {
    const Json* value = JsonFields::find(json, "cpus");
    if (value == nullptr) return std::nullopt;
    auto ranges = parse_cpu_ranges(fields_.text(*value, where + ".cpus"));
    if (ranges) return *std::move(ranges);
    fields_.fail(where + ".cpus", ranges.message());
    return std::nullopt;
  }

  std::vector<int> numa(const Json& json, const std::string& where) {
    const Json* value = JsonFields::find(json, "numa");
    if (value == nullptr) return {};
    const Json list = value->is_array() ? *value : Json::array({*value});
    std::vector<int> ids;
    for_each_node(fields_.numa_list(list, where + ".numa"), [&](int id) { ids.push_back(id); });
    return ids;
  }

  std::optional<LinkClass> link_class(const Json& json, const char* key, const std::string& where) {
    const std::string name = text(json, key, where);
    if (name.empty()) return LinkClass::kUnknown;
    const auto link = parse_link_class(name);
    if (!link) fields_.fail(where + "." + key, "is " + quote(name) + "; allowed: PIX, PXB, PHB, NODE, SYS, SOC, null");
    return link;
  }

  void read_numa(const Json& json, const std::string& where) {
    if (!fields_.object(json, where, {"id", "socket", "cpus", "cpu_count", "memory", "distances", "memory_of_gpu"}))
      return;
    NumaNode node;
    node.id = required(json, "id", where);
    node.socket = number(json, "socket", where, kMaxIndex);
    node.cpus = cpus(json, where);
    node.cpu_count = number(json, "cpu_count", where, kMaxCpuId);
    if (const Json* memory = JsonFields::find(json, "memory")) {
      node.memory = fields_.integer(*memory, where + ".memory", 0, INT64_MAX);
    }
    node.memory_of_gpu = number(json, "memory_of_gpu", where, kMaxIndex);
    each_distance(json, where, node);
    machine_.numa.push_back(std::move(node));
  }

  void each_distance(const Json& json, const std::string& where, NumaNode& node) {
    const Json* list = JsonFields::find(json, "distances");
    if (list == nullptr) return;
    if (!list->is_array()) return fields_.fail(where + ".distances", "is no list");
    for (const Json& item : *list) {
      if (!fields_.object(item, where + ".distances", {"to", "value"})) return;
      node.distances.push_back({required(item, "to", where), required(item, "value", where)});
    }
  }

  void read_bridge(const Json& json, const std::string& where) {
    if (!fields_.object(json, where, {"kind", "parent", "numa", "bus_id"})) return;
    Bridge bridge;
    const std::string kind = text(json, "kind", where);
    const auto* found = std::find(kBridgeKinds.begin(), kBridgeKinds.end(), kind);
    if (found == kBridgeKinds.end()) {
      return fields_.fail(where + ".kind", "is " + quote(kind) + "; allowed: host-bridge, switch, cascade");
    }
    bridge.kind = static_cast<BridgeKind>(found - kBridgeKinds.begin());
    bridge.parent = number(json, "parent", where, kMaxIndex).value_or(-1);
    bridge.numa = numa(json, where);
    bridge.bus_id = text(json, "bus_id", where);
    machine_.bridges.push_back(std::move(bridge));
  }

  void read_gpu(const Json& json, const std::string& where) {
    if (!fields_.object(json, where, {"index", "model", "uuid", "bus_id", "numa", "cpus", "bridge"})) return;
    Gpu gpu;
    gpu.index = required(json, "index", where);
    gpu.model = text(json, "model", where);
    gpu.uuid = text(json, "uuid", where);
    gpu.bus_id = text(json, "bus_id", where);
    gpu.numa = numa(json, where);
    gpu.cpus = cpus(json, where);
    gpu.bridge = number(json, "bridge", where, kMaxIndex);
    machine_.gpus.push_back(std::move(gpu));
  }

  void sort_gpus() {
    std::stable_sort(machine_.gpus.begin(), machine_.gpus.end(),
                     [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
    for (std::size_t i = 0; i < machine_.gpus.size(); ++i) gpu_at_.emplace(machine_.gpus[i].index, static_cast<int>(i));
  }

  void read_nic(const Json& json, const std::string& where) {
    if (!fields_.object(json, where, {"name", "device", "bus_id", "numa", "bridge"})) return;
    Nic nic;
    nic.name = text(json, "name", where);
    nic.device = text(json, "device", where);
    nic.bus_id = text(json, "bus_id", where);
    nic.numa = numa(json, where);
    nic.bridge = number(json, "bridge", where, kMaxIndex);
    nic_at_.emplace(nic.name, static_cast<int>(machine_.nics.size()));
    machine_.nics.push_back(std::move(nic));
  }

  int gpu_position(const Json& json, const char* key, const std::string& where) {
    const auto found = gpu_at_.find(required(json, key, where));
    if (found != gpu_at_.end()) return found->second;
    fields_.fail(where + "." + key, "is no index of a GPU in gpus");
    return 0;
  }

  void read_link(const Json& json, const std::string& where) {
    if (!fields_.object(json, where, {"a", "b", "class", "nvlinks", "switched", "pcie", "mb_per_s"})) return;
    GpuLink link;
    link.a = gpu_position(json, "a", where);
    link.b = gpu_position(json, "b", where);
    if (link.a > link.b) std::swap(link.a, link.b);
    const std::string name = text(json, "class", where);
    if (name.starts_with("NV")) {
      const auto [end, error] = std::from_chars(name.data() + 2, name.data() + name.size(), link.nvlinks);
      if (error != std::errc() || end != name.data() + name.size() || link.nvlinks < 1) {
        return fields_.fail(where + ".class", "is " + quote(name) + "; allowed: NV1..NV" + std::to_string(kMaxNvLinks));
      }
      link.pcie = link_class(json, "pcie", where).value_or(LinkClass::kUnknown);
    } else {
      link.pcie = link_class(json, "class", where).value_or(LinkClass::kUnknown);
    }
    const auto nvlinks = number(json, "nvlinks", where, kMaxNvLinks);
    if (nvlinks && *nvlinks != link.nvlinks) fields_.fail(where + ".nvlinks", "differs from class " + quote(name));
    if (const Json* switched = JsonFields::find(json, "switched")) {
      link.switched = fields_.flag(*switched, where + ".switched");
    }
    machine_.gpu_links.push_back(link);
  }

  void read_nic_link(const Json& json, const std::string& where) {
    if (!fields_.object(json, where, {"gpu", "nic", "class"})) return;
    NicLink link;
    link.gpu = gpu_position(json, "gpu", where);
    const std::string name = text(json, "nic", where);
    const auto nic = nic_at_.find(name);
    if (nic == nic_at_.end()) return fields_.fail(where + ".nic", "is " + quote(name) + ", which is not in nics");
    link.nic = nic->second;
    link.pcie = link_class(json, "class", where).value_or(LinkClass::kUnknown);
    machine_.nic_links.push_back(link);
  }

  void read_kubelet(const Json& json) {
    if (!fields_.object(json, "kubelet", {"policy", "scope", "max_numa_nodes"})) return;
    if (const std::string name = text(json, "policy", "kubelet"); !name.empty()) {
      const auto policy = parse_topology_policy(name);
      if (!policy) return fields_.fail("kubelet.policy", policy.message());
      machine_.kubelet.policy = *policy;
    }
    if (const std::string name = text(json, "scope", "kubelet"); !name.empty()) {
      const auto scope = parse_topology_scope(name);
      if (!scope) return fields_.fail("kubelet.scope", scope.message());
      machine_.kubelet.scope = *scope;
    }
    machine_.kubelet.max_numa_nodes = number(json, "max_numa_nodes", "kubelet", 1024);
  }

  void sort_parts() {
    const auto by_id = [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; };
    std::stable_sort(machine_.numa.begin(), machine_.numa.end(), by_id);
    for (NumaNode& node : machine_.numa) std::stable_sort(node.distances.begin(), node.distances.end());
    std::stable_sort(machine_.gpu_links.begin(), machine_.gpu_links.end());
    std::stable_sort(machine_.nic_links.begin(), machine_.nic_links.end());
  }

  JsonFields fields_;
  Machine machine_;
  std::map<int, int> gpu_at_;
  std::map<std::string, int, std::less<>> nic_at_;
};

}  // namespace

OrderedJson numa_json(const std::vector<int>& ids) {
  if (ids.empty()) return {};
  if (ids.size() == 1) return ids.front();
  return ids;
}

OrderedJson to_json(const Machine& machine) {
  OrderedJson json;
  json["gpus"] = OrderedJson::array();
  json["nics"] = OrderedJson::array();
  json["links"] = OrderedJson::array();
  json["nic_links"] = OrderedJson::array();
  for (const Gpu& gpu : machine.gpus) json["gpus"].push_back(gpu_json(gpu));
  for (const Nic& nic : machine.nics) json["nics"].push_back(nic_json(nic));
  for (const GpuLink& link : machine.gpu_links) json["links"].push_back(link_json(machine, link));
  for (const NicLink& link : machine.nic_links) {
    if (link.pcie == LinkClass::kUnknown) continue;
    json["nic_links"].push_back({{"gpu", machine.gpus[static_cast<std::size_t>(link.gpu)].index},
                                 {"nic", machine.nics[static_cast<std::size_t>(link.nic)].name},
                                 {"class", to_text(link.pcie)}});
  }
  for (const NumaNode& node : machine.numa) json["numa_nodes"].push_back(numa_node_json(node));
  for (const Bridge& bridge : machine.bridges) {
    OrderedJson item = {{"kind", kBridgeKinds[static_cast<std::size_t>(bridge.kind)]}};
    if (bridge.parent >= 0) item["parent"] = bridge.parent;
    if (!bridge.numa.empty()) item["numa"] = numa_json(bridge.numa);
    put_text(item, "bus_id", bridge.bus_id);
    json["bridges"].push_back(std::move(item));
  }
  if (machine.kubelet != KubeletFacts{}) json["kubelet"] = kubelet_json(machine.kubelet);
  if (!machine.gpus_numbered) json["gpus_numbered"] = false;
  return json;
}

std::string to_json_text(const Machine& machine) {
  return to_json(machine).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

bool looks_like_machine_json(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{' && text.find("\"gpus\"") != std::string_view::npos;
}

Result<Reading> read_machine_json(std::string_view text, std::string_view file) {
  const auto document = parse_json_document(text, file);
  if (!document) return document.error();
  Result<Machine> machine = MachineReader().read(*document);
  if (!machine) return Error{std::string(file) + ": " + machine.message()};
  Reading reading;
  reading.machine = *std::move(machine);
  return reading;
}

}  // namespace mortise::topology
