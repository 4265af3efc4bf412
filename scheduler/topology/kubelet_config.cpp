#include "scheduler/topology/kubelet_config.h"

#include <array>
#include <charconv>
#include <span>
#include <string>

#include "scheduler/base/quote.h"

namespace mortise::topology {
namespace {

struct PolicyName {
  std::string_view name;
  TopologyPolicy policy;
};
constexpr std::array kPolicies = {
    PolicyName{"none", TopologyPolicy::kNone},
    PolicyName{"best-effort", TopologyPolicy::kBestEffort},
    PolicyName{"restricted", TopologyPolicy::kRestricted},
    PolicyName{"single-numa-node", TopologyPolicy::kSingleNumaNode},
};

struct CpuOption {
  std::string_view name;
  bool CpuManagerOptions::*flag;  ///< null: accepted, changes nothing here
};
constexpr std::array kCpuOptions = {
    CpuOption{"full-pcpus-only", &CpuManagerOptions::full_pcpus_only},
    CpuOption{"distribute-cpus-across-numa", &CpuManagerOptions::distribute_across_numa},
    CpuOption{"align-by-socket", &CpuManagerOptions::align_by_socket},
    CpuOption{"distribute-cpus-across-cores", &CpuManagerOptions::distribute_across_cores},
    CpuOption{"strict-cpu-reservation", nullptr},
    CpuOption{"prefer-align-cpus-by-uncorecache", &CpuManagerOptions::prefer_align_by_uncore_cache},
};

template <class Row, std::size_t N>
std::string names_of(const std::array<Row, N>& table) {
  std::string text;
  for (const Row& row : table) text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

// Kubelet reads flags with Go's strconv.ParseBool.
Result<bool> parse_flag(std::string_view name, std::string_view value) {
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (value == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (value == no) return false;
  }
  return Error{"option " + std::string(name) + " is " + quote(value) + "; allowed: true, false"};
}

Result<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Error{quote(text) + " is not a whole number"};
  }
  return value;
}

}  // namespace

std::string_view to_text(TopologyPolicy policy) {
  for (const PolicyName& row : kPolicies) {
    if (row.policy == policy) return row.name;
  }
  return "none";
}

Result<TopologyPolicy> parse_topology_policy(std::string_view text) {
  for (const PolicyName& row : kPolicies) {
    if (row.name == text) return row.policy;
  }
  return Error{"unknown topology manager policy " + quote(text) + "; known: " + names_of(kPolicies)};
}

Result<TopologyScope> parse_topology_scope(std::string_view text) {
  if (text == "container") return TopologyScope::kContainer;
  if (text == "pod") return TopologyScope::kPod;
  return Error{"unknown topology manager scope " + quote(text) + "; known: container, pod"};
}

Result<KubeletRules> rules_of_release(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('v')) rest.remove_prefix(1);
  const std::size_t dot = rest.find('.');
  if (dot == std::string_view::npos || rest.substr(0, dot) != "1") {
    return Error{quote(text) + " is not a kubelet release like 1.36 or v1.36.3"};
  }
  rest.remove_prefix(dot + 1);
  const Result<int> minor = parse_int(rest.substr(0, rest.find('.')));
  if (!minor) return Error{quote(text) + " is not a kubelet release like 1.36 or v1.36.3"};
  KubeletRules rules;
  rules.equal_masks = *minor >= 24;
  rules.device_nodes_only = *minor >= 36;
  rules.keep_assigned_cpus = *minor >= 37;
  return rules;
}

Status set_topology_option(KubeletConfig& config, std::string_view name, std::string_view value) {
  if (name == "prefer-closest-numa-nodes") {
    const Result<bool> flag = parse_flag(name, value);
    if (!flag) return flag.error();
    config.prefer_closest = *flag;
    return ok_status();
  }
  if (name == "max-allowable-numa-nodes") {
    const Result<int> number = parse_int(value);
    if (!number || *number < 8) {
      return Error{"option max-allowable-numa-nodes is " + quote(value) + "; allowed: whole numbers from 8"};
    }
    config.max_allowable_numa_nodes = *number;
    return ok_status();
  }
  return Error{"unknown topology manager option " + quote(name) +
               "; known: prefer-closest-numa-nodes, max-allowable-numa-nodes"};
}

Status set_cpu_option(KubeletConfig& config, std::string_view name, std::string_view value) {
  for (const CpuOption& row : kCpuOptions) {
    if (row.name != name) continue;
    const Result<bool> flag = parse_flag(name, value);
    if (!flag) return flag.error();
    if (row.flag != nullptr) config.cpu.*row.flag = *flag;
    return ok_status();
  }
  return Error{"unknown CPU manager option " + quote(name) + "; known: " + names_of(kCpuOptions)};
}

Status check(const KubeletConfig& config) {
  const CpuManagerOptions& cpu = config.cpu;
  const auto clash = [](std::string_view a, std::string_view b) {
    return Error{"kubelet does not start with both " + std::string(a) + " and " + std::string(b)};
  };
  if (cpu.distribute_across_cores) {
    if (cpu.full_pcpus_only) return clash("full-pcpus-only", "distribute-cpus-across-cores");
    if (cpu.distribute_across_numa) return clash("distribute-cpus-across-numa", "distribute-cpus-across-cores");
    if (cpu.prefer_align_by_uncore_cache) {
      return clash("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores");
    }
  }
  if (cpu.prefer_align_by_uncore_cache && cpu.distribute_across_numa) {
    return clash("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa");
  }
  if (config.cpu_static && cpu.align_by_socket && config.policy == TopologyPolicy::kSingleNumaNode) {
    return clash("align-by-socket", "policy single-numa-node");
  }
  return ok_status();
}

}  // namespace mortise::topology
