#include "scheduler/topology/admit_cases.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "scheduler/base/json_depth.h"
#include "scheduler/topology/admit_case.h"
#include "scheduler/topology/json_fields.h"

namespace mortise::topology {
namespace {

using Out = nlohmann::ordered_json;

Out numa_json(NumaMask mask) {
  if (mask == kAnyNuma) return nullptr;
  Out ids = Out::array();
  for_each_node(mask, [&ids](int id) { ids.push_back(id); });
  return ids;
}

Out ids_json(const DeviceResource& resource, const IndexSet& devices) {
  Out ids = Out::array();
  devices.for_each([&](std::size_t i) { ids.push_back(resource.devices[i].id); });
  return ids;
}

// A list of ids where kubelet's choice is determined; else what is certain and "any n of these".
Out grant_json(const NodeState& node, const DeviceGrant& grant) {
  const DeviceResource& resource = node.devices[grant.resource];
  if (grant.some.empty()) return ids_json(resource, grant.exact);
  Out any = Out::array();
  for (const SomeDevices& some : grant.some)
    any.push_back({{"count", some.count}, {"of", ids_json(resource, some.of)}});
  return {{"exact", ids_json(resource, grant.exact)}, {"any", std::move(any)}};
}

Out devices_json(const NodeState& node, const Outcome& outcome) {
  Out devices = Out::object();
  for (const ContainerOutcome& container : outcome.containers) {
    for (const DeviceGrant& grant : container.devices) {
      devices[container.name][node.devices[grant.resource].name] = grant_json(node, grant);
    }
  }
  return devices;
}

// The NUMA nodes of all containers together; null when none of them has an affinity.
Out affinity_json(const Outcome& outcome) {
  NumaMask mask = 0;
  for (const ContainerOutcome& container : outcome.containers) mask |= container.affinity;
  return numa_json(mask);
}

Out shortages_json(const std::vector<Shortage>& shortages) {
  Out list = Out::array();
  for (const Shortage& shortage : shortages) {
    Out item = {{"resource", shortage.resource},
                {"numa", numa_json(shortage.nodes)},
                {"asked", shortage.asked},
                {"free", shortage.free},
                {"installed", shortage.installed}};
    if (!shortage.container.empty()) item["container"] = shortage.container;
    if (shortage.enough) item["enough"] = true;
    list.push_back(std::move(item));
  }
  return list;
}

void write_outcome(const NodeState& node, const Outcome& outcome, Out& json) {
  json["affinity"] = affinity_json(outcome);
  json["reason"] = to_text(outcome.reason);
  json["devices"] = devices_json(node, outcome);
  if (!outcome.message.empty()) json["message"] = outcome.message;
  if (!outcome.why.empty()) json["why"] = outcome.why;
  if (!outcome.shortages.empty()) json["shortages"] = shortages_json(outcome.shortages);
  Out containers = Out::array();
  for (const ContainerOutcome& container : outcome.containers) {
    Out item = {
        {"name", container.name}, {"affinity", numa_json(container.affinity)}, {"preferred", container.preferred}};
    if (!container.cpus.empty()) item["cpus"] = cpu_list_text(container.cpus);
    if (container.memory != 0) item["memory"] = numa_json(container.memory);
    containers.push_back(std::move(item));
  }
  json["containers"] = std::move(containers);
}

// The outcome to show first: one that is refused, if there is one.
const Outcome& leading(const Admission& admission) {
  for (const Outcome& outcome : admission.outcomes) {
    if (!outcome.admit) return outcome;
  }
  return admission.outcomes.front();
}

Out admission_json(const NodeState& node, const Admission& admission) {
  Out json;
  json["admit"] = admission.admit;
  write_outcome(node, leading(admission), json);
  json["certain"] = admission.certain;
  if (!admission.complete) json["complete"] = false;
  if (admission.outcomes.size() > 1) {
    Out list = Out::array();
    for (const Outcome& outcome : admission.outcomes) {
      Out item = {{"admit", outcome.admit}};
      write_outcome(node, outcome, item);
      list.push_back(std::move(item));
    }
    json["outcomes"] = std::move(list);
  }
  return json;
}

// The plugin of a case: devices that must be in, then its ranking, as far as it goes.
PreferredAllocation preference_of(const AdmitCase& input) {
  for (const auto& ranking : input.ranking) {
    if (ranking.empty()) continue;
    return [&input](std::size_t resource, const IndexSet& available, const IndexSet& must_include,
                    std::int64_t size) -> Result<IndexSet> {
      IndexSet wish = must_include;
      for (const std::size_t device : input.ranking[resource]) {
        if (static_cast<std::int64_t>(wish.count()) >= size) break;
        if (available.contains(device)) wish.insert(device);
      }
      return wish;
    };
  }
  return {};
}

Result<Out> answer_hints(const AdmitCase& input, const KubeletConfig& config, HintMerger& merger) {
  Out json;
  if (config.policy == TopologyPolicy::kNone) {
    json = {{"admit", true}, {"affinity", nullptr}, {"preferred", false}, {"reason", ""}, {"devices", nullptr}};
    return json;
  }
  std::vector<HintList> lists;
  for (const auto& [resource, list] : input.hints) lists.push_back(list);
  const Result<Merged> merged = merger.merge(config, input.nodes, lists);
  if (!merged) return merged.error();
  json["admit"] = merged->admit;
  json["affinity"] = numa_json(merged->affinity);
  json["preferred"] = merged->preferred;
  json["reason"] = merged->admit ? "" : to_text(Reason::kTopologyAffinity);
  json["devices"] = nullptr;
  return json;
}

Result<Out> answer_node(const AdmitCase& input, const KubeletConfig& config, TopologyManager& manager) {
  const Result<Admission> admission = manager.admit(input.node, config, input.pod, preference_of(input));
  if (!admission) return admission.error();
  Out json = admission_json(input.node, *admission);
  if (!input.ignored.empty()) json["ignored"] = input.ignored;
  return json;
}

Result<nlohmann::json> parse(std::string_view line) {
  if (nested_deeper(line)) return Error{"nested deeper than " + std::to_string(kMaxNesting) + " levels"};
  try {
    return nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    return Error{"not JSON: byte " + std::to_string(error.byte) + " is not what must come there"};
  }
}

}  // namespace

Result<std::string> AdmitCases::answer(std::string_view json_line) {
  const Result<nlohmann::json> json = parse(json_line);
  if (!json) return json.error();
  const Result<AdmitCase> input = read_admit_case(*json);
  if (!input) return input.error();
  const auto answer_with = [&](const KubeletConfig& config) {
    return input->has_hints ? answer_hints(*input, config, merger_) : answer_node(*input, config, manager_);
  };
  Out out;
  if (input->policy) {
    Result<Out> answer = answer_with(input->config);
    if (!answer) return answer.error();
    out = std::move(*answer);
  } else {
    for (const TopologyPolicy policy :
         {TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted, TopologyPolicy::kSingleNumaNode}) {
      KubeletConfig config = input->config;
      config.policy = policy;
      Result<Out> answer = answer_with(config);
      if (!answer) return answer.error();
      out["result"][std::string(to_text(policy))] = std::move(*answer);
    }
  }
  // The id goes first and keeps its spelling.
  std::string text = out.dump(-1, ' ', false, Out::error_handler_t::replace);
  return "{\"id\":" + input->id_json + "," + text.substr(1);
}

}  // namespace mortise::topology
