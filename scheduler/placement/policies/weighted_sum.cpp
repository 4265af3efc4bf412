#include "scheduler/placement/policies/weighted_sum.h"

namespace mortise::placement {

WeightedSum::WeightedSum(std::vector<Term> terms) : terms_(std::move(terms)) {
  for (const Term& term : terms_) weights_ += term.weight;
}

Score WeightedSum::score(const Candidate& node, const PodShape& pod) const {
  std::int64_t sum = 0;
  for (const Term& term : terms_) sum += term.weight * term.policy->score(node, pod);
  return static_cast<Score>(sum / weights_);
}

Score WeightedSum::tie_score(const Candidate& node, const PodShape& pod) const {
  return terms_.front().policy->tie_score(node, pod);
}

TieRule WeightedSum::tie_rule() const {
  return terms_.front().policy->tie_rule();
}

int WeightedSum::share_device(const Candidate& node, const PodShape& pod, std::uint64_t draw) const {
  return terms_.front().policy->share_device(node, pod, draw);
}

std::optional<topology::Objective> WeightedSum::device_objective() const {
  for (const Term& term : terms_) {
    if (const auto objective = term.policy->device_objective()) return objective;
  }
  return std::nullopt;
}

}  // namespace mortise::placement
