#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/placement/node_topology.h"
#include "scheduler/topology/index_set.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/machine.h"

namespace mortise::kube {

/// Node annotation with what kubelet on the node is configured to: "policy=restricted,scope=pod,cpu=static".
inline constexpr std::string_view kKubeletAnnotation = "mortise.dev/kubelet";

/// What the annotation, or `kubelet` of a pool, says. Empty: not said.
struct KubeletSettings {
  topology::KubeletFacts facts;    ///< what other sources may say, too
  topology::KubeletConfig config;  ///< the rest; what is in `facts` is not set here
  std::optional<topology::KubeletRules> rules;
  std::optional<topology::IndexSet> reserved_cpus;
  std::optional<std::vector<Bytes>> reserved_memory;  ///< by NUMA id
  std::optional<placement::AssignmentMode> mode;
};

/// Sets one key; the table of keys is in docs/topology.md.
Status set_kubelet_key(KubeletSettings& settings, std::string_view key, std::string_view value);

/// Reads "KEY=VALUE,...", each key at most once.
Result<KubeletSettings> parse_kubelet_settings(std::string_view text);

Result<placement::AssignmentMode> parse_assignment_mode(std::string_view text);

}  // namespace mortise::kube
