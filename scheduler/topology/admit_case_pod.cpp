#include "scheduler/topology/admit_case_pod.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "scheduler/base/quote.h"
#include "scheduler/topology/admit_case_node.h"
#include "scheduler/topology/pod_qos.h"

namespace mortise::topology {
namespace {

using Json = nlohmann::json;

std::map<std::string, const Json*> resource_list(JsonFields& fields, const Json* resources, std::string_view key,
                                                 const std::string& where) {
  std::map<std::string, const Json*> list;
  const Json* amounts = resources == nullptr ? nullptr : JsonFields::find(*resources, key);
  if (amounts == nullptr) return list;
  if (!amounts->is_object()) {
    fields.fail(where, "must be an object of resources and quantities");
    return list;
  }
  for (const auto& [name, value] : amounts->items()) {
    if (!value.is_null()) list.emplace(name, &value);
  }
  return list;
}

ComputeAmounts compute_amounts(JsonFields& fields, const std::map<std::string, const Json*>& amounts,
                               const std::string& where) {
  ComputeAmounts found;
  if (const auto cpu = amounts.find("cpu"); cpu != amounts.end()) {
    found.cpu = fields.milli_quantity(*cpu->second, where);
  }
  if (const auto memory = amounts.find("memory"); memory != amounts.end()) {
    found.memory = fields.whole_quantity(*memory->second, where);
  }
  return found;
}

bool is_memory_type(const std::string& name) {
  return name == "memory" || name.starts_with("hugepages-");
}

void read_limits(JsonFields& fields, const std::map<std::string, const Json*>& limits, const std::string& where,
                 ContainerAsk& container, AdmitCase& result) {
  for (const auto& [name, value] : limits) {
    if (name == "cpu" || name == "ephemeral-storage" || is_memory_type(name)) continue;
    const std::vector<DeviceResource>& devices = result.node.devices;
    const auto resource = std::find_if(devices.begin(), devices.end(),
                                       [&name = name](const DeviceResource& r) { return r.name == name; });
    if (resource == devices.end()) {
      if (std::find(result.ignored.begin(), result.ignored.end(), name) == result.ignored.end()) {
        result.ignored.push_back(name);
      }
      continue;
    }
    const auto index = static_cast<std::size_t>(resource - devices.begin());
    container.devices.push_back({index, fields.whole_quantity(*value, where + "." + name)});
  }
  std::sort(container.devices.begin(), container.devices.end(),
            [](const DeviceAsk& a, const DeviceAsk& b) { return a.resource < b.resource; });
}

void read_container(JsonFields& fields, const Json& json, const std::string& where, bool init, QosSums& sums,
                    AdmitCase& result) {
  if (!json.is_object()) return fields.fail(where, "must be an object");
  ContainerAsk container;
  const Json* name = JsonFields::find(json, "name");
  container.name = name == nullptr ? where : fields.text(*name, where + ".name");
  container.role = init ? ContainerRole::kInit : ContainerRole::kApp;
  if (const Json* policy = JsonFields::find(json, "restartPolicy"); policy != nullptr && init) {
    if (fields.text(*policy, where + ".restartPolicy") == "Always") container.role = ContainerRole::kSidecar;
  }
  const Json* resources = JsonFields::find(json, "resources");
  if (resources != nullptr && !resources->is_object()) return fields.fail(where + ".resources", "must be an object");
  const std::map<std::string, const Json*> limits = resource_list(fields, resources, "limits", where + ".limits");
  std::map<std::string, const Json*> requests = resource_list(fields, resources, "requests", where + ".requests");
  // The API server fills in missing requests from the limits.
  for (const auto& [resource, value] : limits) requests.emplace(resource, value);

  read_limits(fields, limits, where + ".limits", container, result);
  for (const auto& [resource, value] : requests) {
    if (resource == "cpu") container.cpu = fields.milli_quantity(*value, where + ".requests.cpu");
    if (!is_memory_type(resource)) continue;
    const std::size_t type = memory_type(fields, resource, where, result);
    container.memory.push_back({type, fields.whole_quantity(*value, where + ".requests." + resource)});
  }
  std::sort(container.memory.begin(), container.memory.end(),
            [](const MemoryAsk& a, const MemoryAsk& b) { return a.type < b.type; });
  sums.add(compute_amounts(fields, requests, where + ".requests"), compute_amounts(fields, limits, where + ".limits"));
  result.pod.containers.push_back(std::move(container));
}

void read_containers(JsonFields& fields, const Json& spec, const std::string& key, bool init, QosSums& sums,
                     AdmitCase& result) {
  const Json* list = JsonFields::find(spec, key);
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > 256) {
    return fields.fail("pod." + key, "must be a list of at most 256 containers");
  }
  for (std::size_t i = 0; i < list->size() && !fields.failed(); ++i) {
    read_container(fields, (*list)[i], "pod." + key + "[" + std::to_string(i) + "]", init, sums, result);
  }
}

void read_qos(JsonFields& fields, const Json& pod, const QosSums& sums, AdmitCase& result) {
  result.pod.qos = sums.classify();
  const Json* status = JsonFields::find(pod, "status");
  const Json* named = status != nullptr && status->is_object() ? JsonFields::find(*status, "qosClass") : nullptr;
  if (named == nullptr) named = JsonFields::find(pod, "qosClass");
  if (named == nullptr) return;
  const std::string text = fields.text(*named, "pod.qosClass");
  if (text == "Guaranteed") {
    result.pod.qos = QosClass::kGuaranteed;
  } else if (text == "Burstable") {
    result.pod.qos = QosClass::kBurstable;
  } else if (text == "BestEffort") {
    result.pod.qos = QosClass::kBestEffort;
  } else {
    fields.fail("pod.qosClass", "is " + quote(text) + "; known: Guaranteed, Burstable, BestEffort");
  }
}

bool has_pod_level_resources(JsonFields& fields, const Json& spec) {
  const Json* resources = JsonFields::find(spec, "resources");
  if (resources == nullptr) return false;
  if (!resources->is_object()) {
    fields.fail("pod.resources", "must be an object");
    return false;
  }
  for (const char* key : {"requests", "limits"}) {
    for (const auto& [name, amount] : resource_list(fields, resources, key, "pod.resources." + std::string(key))) {
      if (name == "cpu" || is_memory_type(name)) return true;
    }
  }
  return false;
}

ContainerAsk* container_named(AdmitCase& result, const std::string& name) {
  for (ContainerAsk& container : result.pod.containers) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

void read_assigned_devices(JsonFields& fields, const Json& json, const std::string& where, ContainerAsk& container,
                           AdmitCase& result) {
  if (!json.is_object()) return fields.fail(where, "must be an object of resources and device ids");
  for (const auto& [name, ids] : json.items()) {
    auto resource = std::find_if(result.node.devices.begin(), result.node.devices.end(),
                                 [&name = name](const DeviceResource& r) { return r.name == name; });
    if (resource == result.node.devices.end() || !ids.is_array()) {
      return fields.fail(where + "." + name, "must be a list of devices of a resource of the node");
    }
    AssignedDevices assigned;
    assigned.resource = static_cast<std::size_t>(resource - result.node.devices.begin());
    for (const Json& item : ids) {
      const std::string id = fields.text(item, where + "." + name);
      const auto device = std::find_if(resource->devices.begin(), resource->devices.end(),
                                       [&id](const Device& d) { return d.id == id; });
      if (device == resource->devices.end()) return fields.fail(where + "." + name, "unknown device " + quote(id));
      device->allocated = true;
      assigned.devices.insert(static_cast<std::size_t>(device - resource->devices.begin()));
    }
    container.assigned.devices.push_back(assigned);
  }
}

}  // namespace

void read_pod(JsonFields& fields, const nlohmann::json& json, AdmitCase& result) {
  if (!json.is_object()) return fields.fail("pod", "must be an object");
  const Json* spec = JsonFields::find(json, "spec");
  if (spec == nullptr) spec = &json;
  if (!spec->is_object()) return fields.fail("pod.spec", "must be an object");
  QosSums sums;
  read_containers(fields, *spec, "initContainers", true, sums, result);
  read_containers(fields, *spec, "containers", false, sums, result);
  if (fields.failed()) return;
  std::set<std::string> names;
  for (const ContainerAsk& container : result.pod.containers) {
    if (!names.insert(container.name).second) fields.fail("pod", "two containers are named " + quote(container.name));
  }
  if (JsonFields::find(*spec, "containers") == nullptr) fields.fail("pod.containers", "is missing");
  result.pod.pod_level_resources = has_pod_level_resources(fields, *spec);
  read_qos(fields, json, sums, result);
}

void read_assigned(JsonFields& fields, const nlohmann::json& json, AdmitCase& result) {
  if (!json.is_object()) return fields.fail("assigned", "must be an object of containers");
  for (const auto& [name, held] : json.items()) {
    const std::string where = "assigned." + name;
    ContainerAsk* container = container_named(result, name);
    if (container == nullptr) return fields.fail(where, "the pod has no such container");
    if (!fields.object(held, where, {"devices", "cpus", "memory"})) return;
    if (const Json* devices = JsonFields::find(held, "devices")) {
      read_assigned_devices(fields, *devices, where + ".devices", *container, result);
    }
    if (const Json* cpus = JsonFields::find(held, "cpus")) {
      container->assigned.cpus = fields.cpu_list(*cpus, where + ".cpus");
      if (!container->assigned.cpus->is_subset_of(result.node.cpus.all - result.node.reserved_cpus)) {
        fields.fail(where + ".cpus", "names a CPU that the node does not have or that is reserved");
      }
      result.node.shared_cpus -= *container->assigned.cpus;
    }
    const Json* memory = JsonFields::find(held, "memory");
    if (memory != nullptr && !memory->is_array()) fields.fail(where + ".memory", "must be a list of blocks");
    if (memory == nullptr || fields.failed()) continue;
    for (const Json& item : *memory) {
      const MemoryBlock block = read_memory_block(fields, item, where + ".memory", result);
      if (fields.failed()) return;
      take_memory(result.node.memory, block);
      container->assigned.memory.push_back(block);
    }
  }
}

}  // namespace mortise::topology
