#include "scheduler/kube/objects/kubelet_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>
#include <utility>

#include "scheduler/base/quantity.h"
#include "scheduler/base/quote.h"
#include "scheduler/topology/cpu_ranges.h"
#include "scheduler/topology/numa_mask.h"

namespace mortise::kube {
namespace {

using topology::KubeletConfig;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlanks) - start + 1);
}

/// Calls `use(part)` for each part between separators, until one is an error.
template <class Use>
Status for_each_part(std::string_view text, char separator, Use&& use) {
  while (true) {
    const std::size_t end = text.find(separator);
    if (const Status used = use(trimmed(text.substr(0, end))); !used) return used;
    if (end == std::string_view::npos) return ok_status();
    text.remove_prefix(end + 1);
  }
}

/// Calls `use(name, value)` for each "name:value" of a list separated by semicolons.
template <class Use>
Status for_each_pair(std::string_view text, std::string_view form, Use&& use) {
  return for_each_part(text, ';', [&](std::string_view part) -> Status {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) return Error{"is " + quote(part) + "; allowed: " + std::string(form)};
    return use(trimmed(part.substr(0, colon)), trimmed(part.substr(colon + 1)));
  });
}

/// A manager of kubelet's: both spellings that its own configuration has ("static" of CPUs, "Static" of memory).
Status set_manager(bool& is_static, std::string_view value) {
  if (value != "static" && value != "Static" && value != "none" && value != "None") {
    return Error{"is " + quote(value) + "; allowed: none, static"};
  }
  is_static = value == "static" || value == "Static";
  return ok_status();
}

Status set_policy(KubeletSettings& settings, std::string_view value) {
  const auto policy = topology::parse_topology_policy(value);
  if (!policy) return policy.error();
  settings.facts.policy = *policy;
  return ok_status();
}

Status set_scope(KubeletSettings& settings, std::string_view value) {
  const auto scope = topology::parse_topology_scope(value);
  if (!scope) return scope.error();
  settings.facts.scope = *scope;
  return ok_status();
}

Status set_cpu(KubeletSettings& settings, std::string_view value) {
  return set_manager(settings.config.cpu_static, value);
}

Status set_memory(KubeletSettings& settings, std::string_view value) {
  return set_manager(settings.config.memory_static, value);
}

Status set_options(KubeletSettings& settings, std::string_view value) {
  return for_each_pair(value, "NAME:VALUE;...", [&](std::string_view name, std::string_view option) -> Status {
    KubeletConfig read = settings.config;
    if (const Status set = topology::set_topology_option(read, name, option); !set) return set;
    if (name == "max-allowable-numa-nodes") {
      settings.facts.max_numa_nodes = read.max_allowable_numa_nodes;
    } else {
      settings.config = read;
    }
    return ok_status();
  });
}

Status set_cpu_options(KubeletSettings& settings, std::string_view value) {
  return for_each_pair(value, "NAME:VALUE;...", [&](std::string_view name, std::string_view option) {
    return topology::set_cpu_option(settings.config, name, option);
  });
}

Status set_reserved_cpus(KubeletSettings& settings, std::string_view value) {
  topology::IndexSet cpus;
  const Status read = for_each_part(value, ';', [&](std::string_view part) -> Status {
    const auto ranges = topology::parse_cpu_ranges(part);
    if (!ranges) return ranges.error();
    for (const topology::CpuRange& range : *ranges) {
      if (range.last >= static_cast<int>(topology::IndexSet::kCapacity)) {
        return Error{"names CPU " + std::to_string(range.last) + "; allowed: 0 to " +
                     std::to_string(topology::IndexSet::kCapacity - 1)};
      }
      for (int cpu = range.first; cpu <= range.last; ++cpu) cpus.insert(static_cast<std::size_t>(cpu));
    }
    return ok_status();
  });
  if (!read) return read;
  settings.reserved_cpus = cpus;
  return ok_status();
}

Status set_reserved_memory(KubeletSettings& settings, std::string_view value) {
  std::vector<Bytes> reserved(topology::kMaxNumaNodes, -1);
  const Status read =
      for_each_pair(value, "NUMA:QUANTITY;...", [&](std::string_view id_text, std::string_view amount) -> Status {
        std::size_t id = 0;
        const auto [end, error] = std::from_chars(id_text.data(), id_text.data() + id_text.size(), id);
        if (error != std::errc() || end != id_text.data() + id_text.size() || id >= reserved.size()) {
          return Error{"names NUMA node " + quote(id_text) + "; allowed: 0 to " + std::to_string(reserved.size() - 1)};
        }
        if (reserved[id] >= 0) return Error{"names NUMA node " + std::to_string(id) + " twice"};
        const auto quantity = Quantity::parse(amount);
        if (!quantity) return quantity.error();
        if (quantity->negative()) return Error{"is " + quote(amount) + "; allowed: amounts from 0"};
        reserved[id] = quantity->rounded_up();
        return ok_status();
      });
  if (!read) return read;
  for (Bytes& bytes : reserved) bytes = std::max<Bytes>(bytes, 0);
  while (!reserved.empty() && reserved.back() == 0) reserved.pop_back();
  settings.reserved_memory = std::move(reserved);
  return ok_status();
}

Status set_version(KubeletSettings& settings, std::string_view value) {
  const auto rules = topology::rules_of_release(value);
  if (!rules) return rules.error();
  settings.rules = *rules;
  return ok_status();
}

Status set_mode(KubeletSettings& settings, std::string_view value) {
  const auto mode = parse_assignment_mode(value);
  if (!mode) return mode.error();
  settings.mode = *mode;
  return ok_status();
}

struct Key {
  std::string_view name;
  Status (*set)(KubeletSettings& settings, std::string_view value);
};
constexpr std::array kKeys = {
    Key{"policy", set_policy},           Key{"scope", set_scope},
    Key{"options", set_options},         Key{"cpu", set_cpu},
    Key{"cpu-options", set_cpu_options}, Key{"reserved-cpus", set_reserved_cpus},
    Key{"memory", set_memory},           Key{"reserved-memory", set_reserved_memory},
    Key{"version", set_version},         Key{"mode", set_mode},
};

}  // namespace

Result<placement::AssignmentMode> parse_assignment_mode(std::string_view text) {
  if (text == "predicted") return placement::AssignmentMode::kPredicted;
  if (text == "enforced") return placement::AssignmentMode::kEnforced;
  return Error{"is " + quote(text) + "; allowed: predicted, enforced"};
}

Status set_kubelet_key(KubeletSettings& settings, std::string_view key, std::string_view value) {
  std::string known;
  for (const Key& row : kKeys) {
    if (row.name == key) {
      const Status set = row.set(settings, value);
      return set ? set : Status(Error{std::string(key) + ": " + set.message()});
    }
    known.append(known.empty() ? "" : ", ").append(row.name);
  }
  return Error{"unknown key " + quote(key) + "; known: " + known};
}

Result<KubeletSettings> parse_kubelet_settings(std::string_view text) {
  KubeletSettings settings;
  std::set<std::string_view> seen;
  const Status read = for_each_part(text, ',', [&](std::string_view part) -> Status {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return Error{quote(part) + " is no KEY=VALUE"};
    const std::string_view key = trimmed(part.substr(0, equals));
    if (!seen.insert(key).second) return Error{"key " + quote(key) + " stands there twice"};
    return set_kubelet_key(settings, key, trimmed(part.substr(equals + 1)));
  });
  if (!read) return read.error();
  return settings;
}

}  // namespace mortise::kube
