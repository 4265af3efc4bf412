#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::sim {

struct DecisionReplaySpec {
  std::string log;  ///< file
  std::string policy;
  std::uint64_t seed = 1;
  std::string typical;    ///< trace whose pods are typical; empty: traces::typical_sample()
  std::string catalogue;  ///< folder of the machine catalogue; empty: the one that came with the program
};

struct Difference {
  std::string pod;  ///< NAMESPACE/NAME
  std::string was_node;
  std::string was_devices;  ///< `0,1`
  std::string now_node;     ///< empty: it fits nowhere
  std::string now_devices;
};

struct DecisionReplayResult {
  std::int64_t decisions = 0;
  std::int64_t same = 0;
  std::int64_t other_devices = 0;  ///< the same node
  std::int64_t other_node = 0;
  std::int64_t not_placed = 0;
  std::vector<Difference> differences;
  std::vector<std::string> notes;
};

/// Takes every decision of a log again, on the cluster that comes of its own decisions: a pod that ends frees the place
/// it was given here. The same policy and seed as the log's give the same places.
Result<DecisionReplayResult> replay_decisions(const DecisionReplaySpec& spec);

}  // namespace mortise::sim
