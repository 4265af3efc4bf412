#include "scheduler/topology/admit_case_node.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "scheduler/base/quote.h"
#include "scheduler/topology/cpu_picker.h"

namespace mortise::topology {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMaxCpus = static_cast<std::int64_t>(IndexSet::kCapacity);

/// Collects the CPUs of a node before they become a layout.
struct CpuDraft {
  std::vector<CpuPlace> places;
  IndexSet reserved;
  IndexSet exclusive;  ///< held by other pods
  bool counted = false;
  bool listed = false;
  std::size_t next = 0;  ///< next id for counted CPUs
};

IndexSet all_of(const CpuDraft& draft) {
  IndexSet cpus;
  for (const CpuPlace& place : draft.places) cpus.insert(static_cast<std::size_t>(place.cpu));
  return cpus;
}

// {"total":16,"reserved":2,"free":10}: ids in the order of the NUMA nodes; the reserved ones first, then the taken.
void read_counted_cpus(JsonFields& fields, const Json& json, const std::string& where, int numa, int socket,
                       CpuDraft& draft) {
  if (!fields.object(json, where, {"total", "reserved", "free"})) return;
  const auto number = [&](std::string_view key, std::int64_t otherwise, std::int64_t most) {
    const Json* value = JsonFields::find(json, key);
    return value == nullptr ? otherwise : fields.integer(*value, where + "." + std::string(key), 0, most);
  };
  draft.counted = true;
  const std::int64_t total = number("total", 0, kMaxCpus - static_cast<std::int64_t>(draft.next));
  const std::int64_t reserved = number("reserved", 0, total);
  const std::int64_t free = number("free", total - reserved, total - reserved);
  for (std::int64_t i = 0; i < total && !fields.failed(); ++i) {
    const std::size_t cpu = draft.next++;
    if (i < reserved) draft.reserved.insert(cpu);
    if (i >= reserved && i < total - free) draft.exclusive.insert(cpu);
    const auto id = static_cast<std::int32_t>(cpu);
    draft.places.push_back({id, id, numa, socket, socket});
  }
}

void read_numa_cpus(JsonFields& fields, const Json& json, const std::string& where, int numa, int socket,
                    CpuDraft& draft) {
  if (json.is_object()) {
    read_counted_cpus(fields, json, where, numa, socket, draft);
    return;
  }
  draft.listed = true;
  fields.cpu_list(json, where).for_each([&](std::size_t cpu) {
    const auto id = static_cast<std::int32_t>(cpu);
    draft.places.push_back({id, id, numa, socket, socket});
  });
}

// Groups given as a list of CPU lists ("cores", "sockets", "caches"); every CPU must be in exactly one.
void read_groups(JsonFields& fields, const Json& json, const std::string& where, std::int32_t CpuPlace::*key,
                 CpuDraft& draft) {
  if (!json.is_array()) {
    fields.fail(where, "must be a list of CPU lists");
    return;
  }
  std::vector<int> group_of(IndexSet::kCapacity, -1);
  for (std::size_t i = 0; i < json.size(); ++i) {
    fields.cpu_list(json[i], where).for_each([&](std::size_t cpu) {
      if (group_of[cpu] >= 0) fields.fail(where, "CPU " + std::to_string(cpu) + " is in two groups");
      group_of[cpu] = static_cast<int>(i);
    });
  }
  for (CpuPlace& place : draft.places) {
    const int group = group_of[static_cast<std::size_t>(place.cpu)];
    if (group < 0) fields.fail(where, "CPU " + std::to_string(place.cpu) + " is in no group");
    place.*key = group;
  }
}

void read_amounts(JsonFields& fields, const Json& json, const std::string& where, AdmitCase& result,
                  MemoryAmounts& amounts) {
  if (!json.is_object()) {
    fields.fail(where, "must be an object of memory types and amounts");
    return;
  }
  for (const auto& [type, amount] : json.items()) {
    const std::size_t index = memory_type(fields, type, where, result);
    if (!fields.failed()) amounts[index] = fields.whole_quantity(amount, where + "." + type);
  }
}

void read_numa_memory(JsonFields& fields, const Json& json, const std::string& where, int id, AdmitCase& result) {
  NumaMemory& memory = result.node.memory[static_cast<std::size_t>(id)];
  memory.group = numa_bit(id);
  if (const Json* value = JsonFields::find(json, "memory")) {
    read_amounts(fields, *value, where + ".memory", result, memory.allocatable);
  }
  memory.free = memory.allocatable;
  if (const Json* value = JsonFields::find(json, "free")) {
    read_amounts(fields, *value, where + ".free", result, memory.free);
    for (std::size_t type = 0; type < kMaxMemoryTypes; ++type) {
      if (memory.free[type] > memory.allocatable[type]) fields.fail(where + ".free", "is more than memory");
    }
  }
  if (const Json* value = JsonFields::find(json, "group")) {
    memory.group = fields.numa_list(*value, where + ".group");
    if ((memory.group & numa_bit(id)) == 0) fields.fail(where + ".group", "must contain the node itself");
  }
  memory.assignments = memory.free != memory.allocatable || width(memory.group) > 1 ? 1 : 0;
}

void read_distance_row(JsonFields& fields, const Json& json, const std::string& where, int id, NumaNodes& nodes) {
  const auto row = static_cast<std::size_t>(id);
  if (nodes.distances.size() <= row) nodes.distances.resize(row + 1);
  if (!json.is_array()) return fields.fail(where, "must be a list of distances");
  for (const Json& value : json) {
    nodes.distances[row].push_back(static_cast<std::uint32_t>(fields.integer(value, where, 0, 65535)));
  }
}

void read_numa_nodes(JsonFields& fields, const Json& json, AdmitCase& result, CpuDraft& draft) {
  if (!json.is_array() || json.empty() || json.size() > kMaxNumaNodes) {
    fields.fail("node.numa", "must be a list of 1 to 64 NUMA nodes");
    return;
  }
  result.node.memory.resize(kMaxNumaNodes);
  for (std::size_t i = 0; i < json.size() && !fields.failed(); ++i) {
    const std::string where = "node.numa[" + std::to_string(i) + "]";
    if (!fields.object(json[i], where, {"id", "cpus", "socket", "memory", "free", "group", "distances"})) return;
    const Json* id_value = JsonFields::find(json[i], "id");
    const int id = id_value == nullptr
                       ? static_cast<int>(i)
                       : static_cast<int>(fields.integer(*id_value, where + ".id", 0, kMaxNumaNodes - 1));
    if (result.node.has_numa(id)) fields.fail(where + ".id", std::to_string(id) + " appears twice");
    result.node.nodes.all |= numa_bit(id);
    const Json* socket_value = JsonFields::find(json[i], "socket");
    const int socket =
        socket_value == nullptr ? id : static_cast<int>(fields.integer(*socket_value, where + ".socket", 0, 1023));
    if (const Json* cpus = JsonFields::find(json[i], "cpus")) {
      read_numa_cpus(fields, *cpus, where + ".cpus", id, socket, draft);
    }
    read_numa_memory(fields, json[i], where, id, result);
    const Json* row = JsonFields::find(json[i], "distances");
    if (row != nullptr) read_distance_row(fields, *row, where + ".distances", id, result.node.nodes);
  }
}

void read_reserved(JsonFields& fields, const Json& json, AdmitCase& result, CpuDraft& draft) {
  if (draft.counted) {
    fields.fail("node.reserved_cpus", "CPUs are given as counts; put \"reserved\" there");
    return;
  }
  if (json.is_string()) {
    draft.reserved = fields.cpu_list(json, "node.reserved_cpus");
    return;
  }
  // A bare number is taken by the static policy itself, from all CPUs.
  const std::int64_t count = fields.integer(json, "node.reserved_cpus", 0, kMaxCpus);
  const Result<CpuLayout> layout = CpuLayout::build(draft.places);
  if (!layout) return fields.fail("node.numa", layout.message());
  const Result<IndexSet> reserved = pick_cpus(*layout, result.config.cpu, layout->all, static_cast<std::size_t>(count));
  if (!reserved) return fields.fail("node.reserved_cpus", reserved.message());
  draft.reserved = *reserved;
}

void read_cpus(JsonFields& fields, const Json& json, AdmitCase& result, CpuDraft& draft) {
  if (draft.counted && draft.listed) fields.fail("node.numa", "cpus are given as counts and as lists; use one form");
  struct Grouping {
    std::string_view key;
    std::int32_t CpuPlace::*field;
  };
  for (const Grouping& grouping : {Grouping{"cores", &CpuPlace::core}, Grouping{"sockets", &CpuPlace::socket},
                                   Grouping{"caches", &CpuPlace::cache}}) {
    if (const Json* value = JsonFields::find(json, grouping.key)) {
      read_groups(fields, *value, "node." + std::string(grouping.key), grouping.field, draft);
    }
  }
  // As kubelet does where the machine does not tell its caches.
  if (JsonFields::find(json, "caches") == nullptr) {
    for (CpuPlace& place : draft.places) place.cache = place.socket;
  }
  if (const Json* value = JsonFields::find(json, "threads_per_core")) {
    const std::int64_t threads = fields.integer(*value, "node.threads_per_core", 1, 8);
    // Siblings follow each other within their NUMA node.
    std::vector<std::int32_t> seen(kMaxNumaNodes, 0);
    for (CpuPlace& place : draft.places) {
      const std::int32_t position = seen[static_cast<std::size_t>(place.numa)]++;
      place.core = place.cpu - position % static_cast<std::int32_t>(threads);
    }
  }
  if (const Json* value = JsonFields::find(json, "reserved_cpus")) read_reserved(fields, *value, result, draft);
  if (const Json* value = JsonFields::find(json, "exclusive_cpus")) {
    draft.exclusive |= fields.cpu_list(*value, "node.exclusive_cpus");
  }
  if (fields.failed()) return;
  Result<CpuLayout> layout = CpuLayout::build(draft.places);
  if (!layout) return fields.fail("node.numa", layout.message());
  result.node.cpus = std::move(*layout);
  const IndexSet all = all_of(draft);
  if (!draft.reserved.is_subset_of(all)) fields.fail("node.reserved_cpus", "names a CPU that the node does not have");
  if (!draft.exclusive.is_subset_of(all - draft.reserved)) {
    fields.fail("node.exclusive_cpus", "names a CPU that the node does not have or that is reserved");
  }
  result.node.reserved_cpus = draft.reserved;
  result.node.shared_cpus = all - draft.exclusive;
}

Device read_device(JsonFields& fields, const Json& json, const std::string& where) {
  Device device;
  if (!fields.object(json, where, {"id", "numa", "healthy", "allocated"})) return device;
  const Json* id = JsonFields::find(json, "id");
  if (id == nullptr) fields.fail(where, "needs an id");
  if (id != nullptr) device.id = fields.text(*id, where + ".id");
  if (const Json* numa = JsonFields::find(json, "numa")) {
    device.numa = fields.numa_list(*numa, where + ".numa");
    device.topology = device.numa == 0 ? DeviceTopology::kEmpty : DeviceTopology::kNodes;
  }
  if (const Json* value = JsonFields::find(json, "healthy")) device.healthy = fields.flag(*value, where + ".healthy");
  if (const Json* value = JsonFields::find(json, "allocated")) {
    device.allocated = fields.flag(*value, where + ".allocated");
  }
  return device;
}

std::vector<std::size_t> read_ranking(JsonFields& fields, const Json& json, const std::string& where,
                                      DeviceResource& resource) {
  std::vector<std::size_t> ranking;
  if (!json.is_array()) fields.fail(where, "must be a list of device ids");
  for (const Json& item : json) {
    const std::string id = fields.text(item, where);
    const auto device = std::find_if(resource.devices.begin(), resource.devices.end(),
                                     [&id](const Device& known) { return known.id == id; });
    if (device == resource.devices.end()) {
      fields.fail(where, "names " + quote(id) + ", which is no device of the resource");
      break;
    }
    ranking.push_back(static_cast<std::size_t>(device - resource.devices.begin()));
    device->alike = static_cast<std::uint32_t>(ranking.size());
  }
  return ranking;
}

void read_resource(JsonFields& fields, const std::string& name, const Json& json, AdmitCase& result) {
  const std::string where = "node.devices." + name;
  const Json* list = &json;
  const Json* prefer = nullptr;
  if (json.is_object()) {
    if (!fields.object(json, where, {"devices", "prefer"})) return;
    list = JsonFields::find(json, "devices");
    prefer = JsonFields::find(json, "prefer");
  }
  if (list == nullptr || !list->is_array() || list->size() > IndexSet::kCapacity) {
    fields.fail(where, "must be a list of at most " + std::to_string(IndexSet::kCapacity) + " devices");
    return;
  }
  DeviceResource resource;
  resource.name = name;
  for (std::size_t i = 0; i < list->size(); ++i) {
    Device device = read_device(fields, (*list)[i], where + "[" + std::to_string(i) + "]");
    const bool repeated = std::any_of(resource.devices.begin(), resource.devices.end(),
                                      [&device](const Device& known) { return known.id == device.id; });
    if (repeated) fields.fail(where, "id " + quote(device.id) + " appears twice");
    if (fields.failed()) return;
    resource.devices.push_back(std::move(device));
  }
  std::vector<std::size_t> ranking;
  if (prefer != nullptr) ranking = read_ranking(fields, *prefer, where + ".prefer", resource);
  result.node.devices.push_back(std::move(resource));
  result.ranking.push_back(std::move(ranking));
}

}  // namespace

void read_distances(JsonFields& fields, const nlohmann::json& json, const std::string& where, NumaNodes& nodes) {
  if (!json.is_array() || json.size() != static_cast<std::size_t>(width(nodes.all))) {
    fields.fail(where, "must have one row per NUMA node");
    return;
  }
  std::size_t row = 0;
  for_each_node(nodes.all, [&](int id) { read_distance_row(fields, json[row++], where, id, nodes); });
}

Status check_distances(const NumaNodes& nodes) {
  bool complete = true;
  const auto highest = static_cast<std::size_t>(std::bit_width(nodes.all)) - 1;
  for_each_node(nodes.all, [&](int id) {
    const auto row = static_cast<std::size_t>(id);
    complete = complete && row < nodes.distances.size() && nodes.distances[row].size() > highest;
  });
  if (complete) return ok_status();
  return Error{"distances: prefer-closest-numa-nodes needs a row of distances 0.." + std::to_string(highest) +
               " for every NUMA node"};
}

std::size_t memory_type(JsonFields& fields, const std::string& name, const std::string& where, AdmitCase& result) {
  std::vector<std::string>& types = result.node.memory_types;
  if (types.empty()) types.push_back("memory");
  const auto known = std::find(types.begin(), types.end(), name);
  if (known != types.end()) return static_cast<std::size_t>(known - types.begin());
  if (!name.starts_with("hugepages-")) {
    fields.fail(where, "unknown memory type " + quote(name) + "; known: memory, hugepages-<size>");
    return 0;
  }
  if (types.size() == kMaxMemoryTypes) {
    fields.fail(where, "more than " + std::to_string(kMaxMemoryTypes) + " memory types");
    return 0;
  }
  types.push_back(name);
  return types.size() - 1;
}

MemoryBlock read_memory_block(JsonFields& fields, const nlohmann::json& json, const std::string& where,
                              AdmitCase& result) {
  MemoryBlock block;
  if (!fields.object(json, where, {"numa", "type", "size"})) return block;
  const Json* numa = JsonFields::find(json, "numa");
  const Json* size = JsonFields::find(json, "size");
  if (numa == nullptr || size == nullptr) {
    fields.fail(where, "needs numa and size");
    return block;
  }
  block.numa = fields.numa_list(*numa, where + ".numa");
  if (block.numa == 0 || (block.numa & ~result.node.nodes.all) != 0) {
    fields.fail(where + ".numa", "must name NUMA nodes of the node");
  }
  block.size = fields.whole_quantity(*size, where + ".size");
  const Json* type = JsonFields::find(json, "type");
  block.type = memory_type(fields, type == nullptr ? "memory" : fields.text(*type, where + ".type"), where, result);
  return block;
}

void read_node(JsonFields& fields, const nlohmann::json& json, AdmitCase& result) {
  const bool known = fields.object(json, "node",
                                   {"numa", "threads_per_core", "cores", "sockets", "caches", "reserved_cpus",
                                    "exclusive_cpus", "memory_blocks", "devices"});
  if (!known) return;
  const Json* numa = JsonFields::find(json, "numa");
  if (numa == nullptr) return fields.fail("node.numa", "is missing");
  CpuDraft draft;
  read_numa_nodes(fields, *numa, result, draft);
  if (fields.failed()) return;
  read_cpus(fields, json, result, draft);
  if (fields.failed()) return;
  result.node.memory.resize(static_cast<std::size_t>(std::bit_width(result.node.nodes.all)));
  for (const NumaMemory& memory : result.node.memory) {
    if ((memory.group & ~result.node.nodes.all) != 0) fields.fail("node.numa", "a group names an unknown NUMA node");
  }
  if (const Json* blocks = JsonFields::find(json, "memory_blocks")) {
    if (!blocks->is_array()) fields.fail("node.memory_blocks", "must be a list of blocks");
    for (const Json& item : *blocks) {
      const MemoryBlock block = read_memory_block(fields, item, "node.memory_blocks", result);
      if (fields.failed()) return;
      take_memory(result.node.memory, block);
    }
  }
  if (const Json* devices = JsonFields::find(json, "devices")) {
    if (!devices->is_object()) return fields.fail("node.devices", "must be an object of resources and their devices");
    for (const auto& [name, list] : devices->items()) read_resource(fields, name, list, result);
  }
}

}  // namespace mortise::topology
