#include <map>
#include <memory>

#include "scheduler/placement/node_insides.h"
#include "scheduler/placement/policies/policies.h"
#include "scheduler/placement/policies/published.h"
#include "scheduler/placement/set_quality.h"

namespace mortise::placement {

namespace {
using topology::GpuSet;
using topology::Objective;

// Of a hundred points, this many for the set of the pod; the others for what is left.
constexpr std::int64_t kSetPoints = 60;
constexpr std::int64_t kRestPoints = 40;
// A node of which nothing is known is as good as a middling one.
constexpr long kUnknownPoints = 50;

// The fastest set for the pod, then the fastest sets for those to come.
class Topology final : public Policy {
 public:
  explicit Topology(Objective objective) : objective_(objective) {}

  Score score(const Candidate& node, const PodShape& pod) const override {
    if (!pod.wants_gpu()) return published_score(100);
    if (node.topology == nullptr || node.topology->sets() == nullptr) return published_score(kUnknownPoints);
    const topology::DeviceSets& sets = *node.topology->sets();
    const SetQuality& quality = quality_of(sets);
    const auto free = static_cast<GpuSet>(node.topology->all_gpus() & ~held_gpus(node.state));
    GpuSet set = 0;
    if (pod.is_share()) {
      set = topology::gpu_bit(share_device(node, pod, 0)) & free;
    } else {
      set = expected_set(*node.topology, free, pod.gpus);
    }
    const std::int64_t points = kSetPoints * quality.ratio(set) + kRestPoints * quality.rest(free & ~set);
    return published_score(static_cast<long>(points / SetQuality::kFull));
  }

  Score tie_score(const Candidate& node, const PodShape& pod) const override {
    return published_score(best_fit_raw(node.state, pod));
  }

  std::optional<Objective> device_objective() const override { return objective_; }

 private:
  const SetQuality& quality_of(const topology::DeviceSets& sets) const {
    std::unique_ptr<SetQuality>& quality = qualities_[&sets];
    if (!quality) quality = std::make_unique<SetQuality>(sets, objective_);
    return *quality;
  }

  GpuSet expected_set(const NodeTopology& node, GpuSet free, int count) const {
    if (!node.enforced() && node.plugin_known()) {
      if (const GpuSet picked = node.sets()->plugin().pick(free, count).set; picked != 0) return picked;
    }
    return node.sets()->best(objective_, free, count);
  }

  Objective objective_;
  mutable std::map<const topology::DeviceSets*, std::unique_ptr<SetQuality>> qualities_;  // never read in order
};
}  // namespace

Result<std::unique_ptr<Policy>> make_topology(PolicyOptions& options, const TypicalPods&) {
  Objective objective = Objective::kBottleneck;
  options.choice("objective",
                 {{"bottleneck", Objective::kBottleneck}, {"ring", Objective::kRing}, {"total", Objective::kTotal}},
                 objective);
  return options.finish(std::make_unique<Topology>(objective));
}

}  // namespace mortise::placement
