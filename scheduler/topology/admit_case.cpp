#include "scheduler/topology/admit_case.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/base/quote.h"
#include "scheduler/topology/admit_case_node.h"
#include "scheduler/topology/admit_case_pod.h"
#include "scheduler/topology/json_fields.h"

namespace mortise::topology {
namespace {

using Json = nlohmann::json;

template <class Read>
void take(JsonFields& fields, const std::string& where, Result<Read> value, auto& target) {
  if (value) {
    target = *value;
  } else {
    fields.fail(where, value.message());
  }
}

bool manager_is_on(JsonFields& fields, const Json& value, const std::string& where, std::string_view on,
                   std::string_view off) {
  const std::string text = fields.text(value, where);
  const auto same = [&text](std::string_view name) {
    return std::equal(text.begin(), text.end(), name.begin(), name.end(),
                      [](char a, char b) { return (a | 0x20) == (b | 0x20); });
  };
  if (!same(on) && !same(off)) {
    fields.fail(where, "is " + quote(text) + "; known: " + std::string(off) + ", " + std::string(on));
  }
  return same(on);
}

void read_options(JsonFields& fields, const Json& json, const std::string& where, KubeletConfig& config,
                  Status (*set)(KubeletConfig&, std::string_view, std::string_view)) {
  if (!json.is_object()) {
    fields.fail(where, "must be an object of option names and values");
    return;
  }
  for (const auto& [name, value] : json.items()) {
    const Status status = set(config, name, fields.scalar_text(value, where + "." + name));
    if (!status) fields.fail(where, status.message());
  }
}

void read_config(JsonFields& fields, const Json& json, AdmitCase& result) {
  KubeletConfig& config = result.config;
  if (const Json* value = JsonFields::find(json, "kubelet")) {
    take(fields, "kubelet", rules_of_release(fields.text(*value, "kubelet")), config.rules);
  }
  if (const Json* value = JsonFields::find(json, "equality_rule")) {
    config.rules.equal_masks = fields.flag(*value, "equality_rule");
  }
  if (const Json* value = JsonFields::find(json, "empty_topology_aligns")) {
    config.rules.empty_topology_aligns = fields.flag(*value, "empty_topology_aligns");
  }
  if (const Json* value = JsonFields::find(json, "policy")) {
    take(fields, "policy", parse_topology_policy(fields.text(*value, "policy")), config.policy);
    result.policy = config.policy;
  }
  if (const Json* value = JsonFields::find(json, "scope")) {
    take(fields, "scope", parse_topology_scope(fields.text(*value, "scope")), config.scope);
  }
  if (const Json* value = JsonFields::find(json, "options")) {
    read_options(fields, *value, "options", config, set_topology_option);
  }
  if (const Json* value = JsonFields::find(json, "cpu")) {
    config.cpu_static = manager_is_on(fields, *value, "cpu", "static", "none");
  }
  if (const Json* value = JsonFields::find(json, "cpu_options")) {
    read_options(fields, *value, "cpu_options", config, set_cpu_option);
  }
  if (const Json* value = JsonFields::find(json, "memory")) {
    config.memory_static = manager_is_on(fields, *value, "memory", "static", "none");
  }
}

// A resource's hints as kubelet tells them apart: nil, an empty list, a list.
HintList read_hint_list(JsonFields& fields, const Json& json, const std::string& where, NumaMask all) {
  if (json.is_null()) return no_preference();
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    if (text.starts_with("nil") || text.starts_with("no key")) return no_preference();
    fields.fail(where, "is " + quote(text) + "; allowed: a list of hints, null, \"nil\", \"no key\"");
    return {};
  }
  if (!json.is_array()) {
    fields.fail(where, "must be a list of hints, null, \"nil\" or \"no key\"");
    return {};
  }
  HintList list;
  for (const Json& item : json) {
    if (!fields.object(item, where, {"mask", "preferred"})) return {};
    Hint hint;
    if (const Json* mask = JsonFields::find(item, "mask")) {
      hint.mask = fields.numa_list(*mask, where + ".mask");
      if (hint.mask == 0) fields.fail(where + ".mask", "is empty; allowed: null or at least one NUMA node");
      if ((hint.mask & ~all) != 0) fields.fail(where + ".mask", "names a NUMA node that is not in numa_nodes");
    }
    if (const Json* preferred = JsonFields::find(item, "preferred")) {
      hint.preferred = fields.flag(*preferred, where + ".preferred");
    }
    list.push_back(hint);
  }
  return list.empty() ? no_placement() : list;
}

void read_hints(JsonFields& fields, const Json& json, AdmitCase& result) {
  result.has_hints = true;
  const Json* numa_nodes = JsonFields::find(json, "numa_nodes");
  if (numa_nodes == nullptr) {
    fields.fail("numa_nodes", "is missing; a case with hints needs it");
    return;
  }
  result.nodes.all = fields.numa_list(*numa_nodes, "numa_nodes");
  if (result.nodes.all == 0) fields.fail("numa_nodes", "must name at least one NUMA node");
  if (const Json* distances = JsonFields::find(json, "distances")) {
    read_distances(fields, *distances, "distances", result.nodes);
  }
  const Json& hints = json.at("hints");
  if (!hints.is_object()) {
    fields.fail("hints", "must be an object of resources and their hints");
    return;
  }
  for (const auto& [resource, list] : hints.items()) {
    result.hints.emplace_back(resource, read_hint_list(fields, list, "hints." + resource, result.nodes.all));
  }
}

}  // namespace

Result<AdmitCase> read_admit_case(const nlohmann::json& json) {
  JsonFields fields;
  AdmitCase result;
  const bool known = fields.object(
      json, "case",
      {"id",  "policy",      "scope",  "options",    "kubelet",   "equality_rule", "empty_topology_aligns",
       "cpu", "cpu_options", "memory", "numa_nodes", "distances", "hints",         "node",
       "pod", "assigned",    "title",  "setup",      "result",    "note",          "after_admit"});
  if (!known) return fields.error();
  const Json* id = JsonFields::find(json, "id");
  if (id == nullptr || (!id->is_string() && !id->is_number_integer())) {
    return Error{"id: must be a string or a whole number"};
  }
  result.id_json = id->dump(-1, ' ', false, Json::error_handler_t::replace);
  read_config(fields, json, result);
  const bool has_hints = JsonFields::find(json, "hints") != nullptr;
  const bool has_node = JsonFields::find(json, "node") != nullptr && JsonFields::find(json, "pod") != nullptr;
  if (has_hints == has_node) return Error{"case: needs either hints and numa_nodes, or node and pod"};
  if (has_hints) {
    read_hints(fields, json, result);
  } else {
    read_node(fields, json.at("node"), result);
    if (!fields.failed()) read_pod(fields, json.at("pod"), result);
    const Json* assigned = JsonFields::find(json, "assigned");
    if (assigned != nullptr && !fields.failed()) read_assigned(fields, *assigned, result);
  }
  if (fields.failed()) return fields.error();
  if (result.config.prefer_closest) {
    const NumaNodes& nodes = has_hints ? result.nodes : result.node.nodes;
    if (const Status status = check_distances(nodes); !status) return status.error();
  }
  return result;
}

}  // namespace mortise::topology
