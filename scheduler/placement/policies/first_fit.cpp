#include "scheduler/placement/policies/policies.h"

namespace mortise::placement {

namespace {
class FirstFit final : public Policy {
 public:
  Score score(const Candidate&, const PodShape&) const override { return 0; }
};
}  // namespace

Result<std::unique_ptr<Policy>> make_first_fit(PolicyOptions& options, const TypicalPods&) {
  return options.finish(std::make_unique<FirstFit>());
}

}  // namespace mortise::placement
