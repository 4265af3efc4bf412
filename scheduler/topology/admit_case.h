#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/hints.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/merge_hints.h"
#include "scheduler/topology/node_state.h"
#include "scheduler/topology/pod_ask.h"

namespace mortise::topology {

/// One case of `mortise admit`: either hints to merge, or a node and a pod.
struct AdmitCase {
  std::string id_json;                   ///< the id as it was written: text or number
  std::optional<TopologyPolicy> policy;  ///< absent: the answer covers every policy that uses hints
  KubeletConfig config;                  ///< with `policy`, if there is one

  bool has_hints = false;
  NumaNodes nodes;
  std::vector<std::pair<std::string, HintList>> hints;  ///< resource -> hints

  NodeState node;
  PodAsk pod;
  /// By resource of the node: the plugin's ranking of devices, best first. Devices that are not named are alike.
  std::vector<std::vector<std::size_t>> ranking;
  std::vector<std::string> ignored;  ///< asked resources that no manager of the node knows
};

/// Reads a case. An error names the place and what is allowed there.
Result<AdmitCase> read_admit_case(const nlohmann::json& json);

}  // namespace mortise::topology
