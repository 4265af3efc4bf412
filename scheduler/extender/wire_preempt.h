#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::extender {

// The documents of the preempt verb; how keys are matched: wire.h.

/// A pod that kube-scheduler would evict.
struct ProposedVictim {
  std::string_view uid;                  ///< empty: the entry names none
  std::optional<std::int64_t> priority;  ///< of an entry that is a whole Pod; one that says none has 0
};

/// A node on which kube-scheduler would make room, and how.
struct PreemptionCandidate {
  std::string_view node;
  std::vector<ProposedVictim> victims;  ///< none: newer kube-schedulers leave it to the extender to name them
  std::int64_t pdb_violations = 0;      ///< how many evictions would violate a PodDisruptionBudget
};

/// The body of preempt. The views point into the request's bytes, which must outlive it.
struct PreemptionArgs {
  std::string_view pod;  ///< the Pod's JSON text; empty: null or missing
  /// NodeNameToMetaVictims, or where that has no entry NodeNameToVictims; each node once, in the order of the request.
  std::vector<PreemptionCandidate> candidates;
  std::deque<std::string> kept;  ///< what views point to that cannot point into the request
};

/// `body` as for read_extender_args().
Result<PreemptionArgs> read_preemption_args(std::string& body);

/// What is to be evicted on one node.
struct NodeVictims {
  std::string node;  ///< not a view: the answer is written when the node may have left the cluster
  std::vector<std::string> uids;
  std::int64_t pdb_violations = 0;
};

/// The answer to preempt; a node that is missing is no candidate.
std::string write_preemption_result(const std::vector<NodeVictims>& nodes);

}  // namespace mortise::extender
