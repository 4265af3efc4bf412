#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "scheduler/placement/policy.h"

namespace mortise::placement {

/// The weighted mean of several policies' scores; ties, a share's device and tie rule are the first one's, whole GPUs
/// are chosen by the first that has an objective.
class WeightedSum final : public Policy {
 public:
  struct Term {
    std::unique_ptr<Policy> policy;
    std::int64_t weight;
  };
  /// At least one term; weights above 0.
  explicit WeightedSum(std::vector<Term> terms);

  Score score(const Candidate& node, const PodShape& pod) const override;
  Score tie_score(const Candidate& node, const PodShape& pod) const override;
  TieRule tie_rule() const override;
  int share_device(const Candidate& node, const PodShape& pod, std::uint64_t draw) const override;
  std::optional<topology::Objective> device_objective() const override;

 private:
  std::vector<Term> terms_;
  std::int64_t weights_ = 0;
};

}  // namespace mortise::placement
