#pragma once

#include <string>
#include <vector>

#include "scheduler/topology/admission.h"
#include "scheduler/topology/hints.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/merge_hints.h"

namespace mortise::topology {

/// What stands behind the hints of one resource.
struct Supply {
  std::string resource;
  std::int64_t asked = 0;
  HintList hints;
  std::vector<std::int64_t> free;       ///< by NUMA id; devices with several nodes count in each
  std::vector<std::int64_t> installed;  ///< by NUMA id
  std::int64_t total_free = 0;          ///< devices with several nodes, or none, count once
};

/// Explains a refused merge: what is short where, as data and as one line. `container` is empty for the whole pod.
void explain_refusal(const KubeletConfig& config, const NumaNodes& nodes, const std::string& container,
                     const std::vector<Supply>& supplies, const Merged& merged, std::vector<Shortage>& shortages,
                     std::string& why);

}  // namespace mortise::topology
