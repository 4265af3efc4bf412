#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/shape_table.h"
#include "scheduler/topology/device_sets.h"

namespace mortise::placement {

class TypicalPods;

/// A feasible candidate, before the pod is placed on it.
struct Candidate {
  const NodeState& state;
  const Machine& machine;
  const NodeTopology* topology = nullptr;  ///< null: not known
};

/// What decides between candidates of equal score (and equal tie score).
enum class TieRule {
  kRank,    ///< the lowest node rank
  kRandom,  ///< uniform, from the seed, the cluster's version and the pod's name
};

/// Answers only how good a candidate is and which device a share takes; never changes anything.
class Policy {
 public:
  virtual ~Policy() = default;

  /// A pure function of its arguments, 0..kMaxScore; the engine caches it per (state, shape).
  virtual Score score(const Candidate& node, const PodShape& pod) const = 0;
  /// Second key among equal scores, larger wins.
  virtual Score tie_score(const Candidate&, const PodShape&) const { return 0; }
  virtual TieRule tie_rule() const { return TieRule::kRank; }
  /// The device for a pod that asks for a share of one GPU; `draw` are uniform bits for policies that choose
  /// at random. Default: the smallest sufficient rest, lowest index on ties.
  virtual int share_device(const Candidate& node, const PodShape& pod, std::uint64_t draw) const;
  /// By what whole GPUs are chosen on nodes where we choose them; empty: the first free ones.
  virtual std::optional<topology::Objective> device_objective() const { return std::nullopt; }
};

/// One row of the policy table.
struct PolicyInfo {
  std::string_view name;
  std::string_view description;
  bool own = false;          ///< ours, as opposed to published
  std::string_view options;  ///< what may follow a colon, for help texts; empty: nothing
};

std::span<const PolicyInfo> policy_table();

/// Makes a policy from its spelling: `name[:option=value]...`, or several joined by `+` for the weighted sum
/// (`a+2*b`; ties, device choice and tie rule as of the first). The error lists the known names.
Result<std::unique_ptr<Policy>> make_policy(std::string_view spelling, const TypicalPods& typical);

}  // namespace mortise::placement
