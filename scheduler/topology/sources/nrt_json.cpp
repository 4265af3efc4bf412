#include "scheduler/topology/sources/nrt_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "scheduler/base/quote.h"
#include "scheduler/topology/json_fields.h"
#include "scheduler/topology/numa_mask.h"
#include "scheduler/topology/sources/json_document.h"

namespace mortise::topology {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDistance = 255;  // one byte in the firmware's table

// The deprecated field topologyPolicies: policy and scope in one word.
struct PolicyWord {
  std::string_view word;
  TopologyPolicy policy;
  TopologyScope scope;
};
constexpr std::array kPolicyWords = {
    PolicyWord{"None", TopologyPolicy::kNone, TopologyScope::kContainer},
    PolicyWord{"BestEffort", TopologyPolicy::kBestEffort, TopologyScope::kContainer},
    PolicyWord{"BestEffortContainerLevel", TopologyPolicy::kBestEffort, TopologyScope::kContainer},
    PolicyWord{"BestEffortPodLevel", TopologyPolicy::kBestEffort, TopologyScope::kPod},
    PolicyWord{"Restricted", TopologyPolicy::kRestricted, TopologyScope::kContainer},
    PolicyWord{"RestrictedContainerLevel", TopologyPolicy::kRestricted, TopologyScope::kContainer},
    PolicyWord{"RestrictedPodLevel", TopologyPolicy::kRestricted, TopologyScope::kPod},
    PolicyWord{"SingleNUMANodeContainerLevel", TopologyPolicy::kSingleNumaNode, TopologyScope::kContainer},
    PolicyWord{"SingleNUMANodePodLevel", TopologyPolicy::kSingleNumaNode, TopologyScope::kPod},
};

// "node-0" and "numa-node-1" end with the id.
std::optional<int> numa_id(std::string_view zone) {
  const std::size_t last = zone.find_last_not_of("0123456789");
  const std::string_view digits = last == std::string_view::npos ? zone : zone.substr(last + 1);
  int id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (digits.empty() || error != std::errc() || id >= kMaxNumaNodes) return std::nullopt;
  return id;
}

class ReportReader {
 public:
  explicit ReportReader(std::string where) : where_(std::move(where)) {}

  Result<NodeTopologyReport> read(const Json& json) {
    if (const Json* metadata = object(json, "metadata", "metadata")) {
      report_.reading.node = text(*metadata, "name", "metadata");
      read_written(*metadata);
    }
    read_policy_words(json);
    read_attributes(json);
    each(json, "zones", "", [&](const Json& zone, const std::string& where) { read_zone(zone, where); });
    if (fields_.failed()) return Error{where_ + fields_.error().message};
    return finish();
  }

 private:
  void note(const std::string& what) { report_.reading.notes.push_back(what); }

  const Json* object(const Json& json, const char* key, const std::string& where) {
    const Json* value = JsonFields::find(json, key);
    if (value == nullptr || value->is_object()) return value;
    fields_.fail(where, "is no object");
    return nullptr;
  }

  std::string text(const Json& json, const char* key, const std::string& where) {
    const Json* value = JsonFields::find(json, key);
    return value == nullptr ? std::string() : fields_.text(*value, where + "." + key);
  }

  std::string required_text(const Json& json, const char* key, const std::string& where) {
    std::string value = text(json, key, where);
    if (value.empty()) fields_.fail(where + "." + key, "is missing");
    return value;
  }

  template <class Read>
  void each(const Json& json, const char* key, const std::string& prefix, Read&& read) {
    const Json* list = JsonFields::find(json, key);
    if (list == nullptr || fields_.failed()) return;
    if (!list->is_array()) return fields_.fail(prefix + key, "is no list");
    for (std::size_t i = 0; i < list->size() && !fields_.failed(); ++i) {
      const std::string where = prefix + key + "[" + std::to_string(i) + "]";
      if (!(*list)[i].is_object()) return fields_.fail(where, "is no object");
      read((*list)[i], where);
    }
  }

  /// Times of one form, in UTC: the later one is the greater text.
  void read_written(const Json& metadata) {
    report_.written = text(metadata, "creationTimestamp", "metadata");
    each(metadata, "managedFields", "metadata.", [&](const Json& item, const std::string& where) {
      const Json* fields = JsonFields::find(item, "fieldsV1");
      if (fields == nullptr || !fields->is_object() || !fields->contains("f:zones")) return;
      report_.written = std::max(report_.written, text(item, "time", where));
    });
  }

  void read_policy_words(const Json& json) {
    const Json* list = JsonFields::find(json, "topologyPolicies");
    if (list == nullptr) return;
    if (!list->is_array()) return fields_.fail("topologyPolicies", "is no list");
    for (const Json& item : *list) {
      const std::string word = fields_.text(item, "topologyPolicies");
      const auto* found = std::find_if(kPolicyWords.begin(), kPolicyWords.end(),
                                       [&](const PolicyWord& row) { return row.word == word; });
      if (found == kPolicyWords.end()) {
        note("topologyPolicies has " + quote(word) + ", which says no policy and scope; left out");
      } else {
        KubeletFacts& kubelet = report_.reading.machine.kubelet;
        if (!kubelet.policy) kubelet.policy = found->policy;
        if (!kubelet.scope) kubelet.scope = found->scope;
      }
    }
  }

  // Attributes hold kubelet's own words and go before topologyPolicies.
  void read_attributes(const Json& json) {
    each(json, "attributes", "", [&](const Json& item, const std::string& where) {
      const std::string name = required_text(item, "name", where);
      const std::string value = text(item, "value", where);
      KubeletFacts& kubelet = report_.reading.machine.kubelet;
      if (name == "topologyManagerPolicy") {
        if (const auto policy = parse_topology_policy(value)) return void(kubelet.policy = *policy);
      } else if (name == "topologyManagerScope") {
        if (const auto scope = parse_topology_scope(value)) return void(kubelet.scope = *scope);
      } else if (name == "topologyManagerMaxNUMANodes") {
        int most = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), most);
        if (error == std::errc() && end == value.data() + value.size() && most > 0) {
          return void(kubelet.max_numa_nodes = most);
        }
      } else {
        return;
      }
      note("attribute " + name + " is " + quote(value) + ", which kubelet does not know; left out");
    });
  }

  void read_zone(const Json& json, const std::string& where) {
    const std::string name = required_text(json, "name", where);
    const std::string type = text(json, "type", where);
    if (fields_.failed()) return;
    if (!type.empty() && type != "Node")
      return note("zone " + quote(name) + " is of type " + quote(type) + "; left out");
    const auto id = numa_id(name);
    if (!id) {
      return fields_.fail(where + ".name", "is " + quote(name) + "; allowed: a name that ends with a NUMA id below " +
                                               std::to_string(kMaxNumaNodes));
    }
    Zone zone;
    zone.numa = *id;
    zone.name = name;
    each(json, "resources", where + ".",
         [&](const Json& item, const std::string& place) { read_resource(item, place, zone); });
    NumaNode node;
    node.id = *id;
    each(json, "costs", where + ".", [&](const Json& item, const std::string& place) { read_cost(item, place, node); });
    std::sort(node.distances.begin(), node.distances.end());
    machine_nodes_.push_back(std::move(node));
    report_.zones.push_back(std::move(zone));
  }

  void read_cost(const Json& json, const std::string& where, NumaNode& node) {
    const std::string name = required_text(json, "name", where);
    const Json* value = JsonFields::find(json, "value");
    if (fields_.failed()) return;
    const auto to = numa_id(name);
    if (!to) return fields_.fail(where + ".name", "is " + quote(name) + ", which ends with no NUMA id");
    if (value == nullptr) return fields_.fail(where + ".value", "is missing");
    node.distances.push_back({*to, static_cast<int>(fields_.integer(*value, where + ".value", 1, kMaxDistance))});
  }

  void read_resource(const Json& json, const std::string& where, Zone& zone) {
    ZoneResource resource;
    resource.name = required_text(json, "name", where);
    if (fields_.failed()) return;
    const auto amount = [&](const char* key) -> std::optional<std::int64_t> {
      const Json* value = JsonFields::find(json, key);
      if (value == nullptr) return std::nullopt;
      const std::string place = where + "." + key;
      return resource.name == "cpu" ? fields_.milli_quantity(*value, place) : fields_.whole_quantity(*value, place);
    };
    const auto capacity = amount("capacity");
    const auto allocatable = amount("allocatable");
    const auto available = amount("available");
    resource.capacity = capacity.value_or(allocatable.value_or(available.value_or(0)));
    resource.allocatable = allocatable.value_or(resource.capacity);
    resource.available = available.value_or(resource.allocatable);
    resource.has_available = available.has_value();
    for (const ZoneResource& other : zone.resources) {
      if (other.name == resource.name)
        return fields_.fail(where + ".name", "is " + quote(other.name) + " twice in the zone");
    }
    zone.resources.push_back(std::move(resource));
  }

  Result<NodeTopologyReport> finish() {
    Machine& machine = report_.reading.machine;
    machine.gpus_numbered = false;
    const auto by_id = [](const auto& a, const auto& b) { return a.numa < b.numa; };
    std::stable_sort(report_.zones.begin(), report_.zones.end(), by_id);
    std::stable_sort(machine_nodes_.begin(), machine_nodes_.end(),
                     [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; });
    machine.numa = std::move(machine_nodes_);
    for (std::size_t i = 0; i < report_.zones.size(); ++i) {
      for (const ZoneResource& resource : report_.zones[i].resources) {
        if (const Status status = fill(machine, machine.numa[i], resource); !status) {
          return Error{where_ + "zone " + quote(report_.zones[i].name) + ": " + status.message()};
        }
      }
    }
    if (const Status status = check(machine); !status) return Error{where_ + status.message()};
    return std::move(report_);
  }

  static Status fill(Machine& machine, NumaNode& node, const ZoneResource& resource) {
    if (resource.name == "cpu")
      node.cpu_count = static_cast<int>(std::min<std::int64_t>(resource.capacity / 1000, kMaxCpuId));
    if (resource.name == "memory") node.memory = resource.capacity;
    if (resource.name != kNrtGpuResource) return ok_status();
    const auto room = static_cast<std::int64_t>(kMaxGpus - machine.gpus.size());
    if (resource.capacity > room) {
      return Error{std::to_string(resource.capacity) + " GPUs; allowed: up to " + std::to_string(kMaxGpus) +
                   " on a node"};
    }
    for (std::int64_t i = 0; i < resource.capacity; ++i) {
      Gpu gpu;
      gpu.index = static_cast<int>(machine.gpus.size());
      gpu.numa = {node.id};
      machine.gpus.push_back(std::move(gpu));
    }
    return ok_status();
  }

  std::string where_;
  JsonFields fields_;
  NodeTopologyReport report_;
  std::vector<NumaNode> machine_nodes_;
};

std::string kind_of(const Json& json) {
  const auto kind = json.is_object() ? json.find("kind") : json.end();
  return json.is_object() && kind != json.end() && kind->is_string() ? kind->get<std::string>() : std::string();
}

}  // namespace

bool looks_like_nrt_json(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{' &&
         text.find("\"NodeResourceTopology") != std::string_view::npos;
}

Result<std::vector<NodeTopologyReport>> read_node_topologies(std::string_view json, std::string_view file) {
  const auto document = parse_json_document(json, file);
  if (!document) return document.error();
  const std::string kind = kind_of(*document);
  std::vector<NodeTopologyReport> reports;
  const auto add = [&](const Json& item, const std::string& where) -> Status {
    // Items of a typed list carry no kind of their own.
    if (kind_of(item) != "NodeResourceTopology" &&
        !(kind == "NodeResourceTopologyList" && kind_of(item).empty() && item.is_object())) {
      return Error{where + "kind is " + quote(kind_of(item)) + "; allowed: NodeResourceTopology, a List of them"};
    }
    auto report = decode_node_topology(item, where);
    if (!report) return report.error();
    reports.push_back(*std::move(report));
    return ok_status();
  };
  const std::string where = std::string(file) + ": ";
  if (kind != "List" && kind != "NodeResourceTopologyList") {
    if (const Status status = add(*document, where); !status) return status.error();
    return reports;
  }
  const Json* items = JsonFields::find(*document, "items");
  if (items == nullptr || !items->is_array()) return Error{where + "items is missing or no list"};
  for (std::size_t i = 0; i < items->size(); ++i) {
    if (const Status status = add((*items)[i], where + "items[" + std::to_string(i) + "]."); !status)
      return status.error();
  }
  return reports;
}

Result<NodeTopologyReport> decode_node_topology(const nlohmann::json& object, const std::string& where) {
  if (!object.is_object()) return Error{where + "is no object"};
  return ReportReader(where).read(object);
}

Result<Reading> read_nrt_json(std::string_view json, std::string_view file) {
  auto reports = read_node_topologies(json, file);
  if (!reports) return reports.error();
  if (reports->size() != 1) {
    return Error{std::string(file) + ": " + std::to_string(reports->size()) +
                 " NodeResourceTopology objects; allowed: one"};
  }
  return std::move(reports->front().reading);
}

}  // namespace mortise::topology
