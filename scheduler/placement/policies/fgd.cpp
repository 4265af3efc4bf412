#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policies/policies.h"
#include "scheduler/placement/policies/published.h"

namespace mortise::placement {

namespace {
enum class FgdTie { kRank, kBestFit, kRandom };

// Fragmentation gradient descent: the node, and the device, whose expected fragmentation grows least.
class Fgd final : public Policy {
 public:
  Fgd(const TypicalPods& typical, FgdTie tie, std::optional<std::int64_t> step)
      : model_(typical), tie_(tie), step_(step) {}

  Score score(const Candidate& node, const PodShape& pod) const override {
    if (pod.cpu == 0 && !pod.wants_gpu()) return step_ ? stepped(0) : published_score(100);
    if (pod.is_share()) return best_share(node, pod).score;
    NodeState after = node.state;
    int left = pod.gpus;
    for (std::size_t d = 0; left > 0; ++d) {
      if (after.free[d] != kWholeGpu) continue;
      after.free[d] = 0;
      --left;
    }
    return gain(before(node), after, node, pod);
  }

  Score tie_score(const Candidate& node, const PodShape& pod) const override {
    return tie_ == FgdTie::kBestFit ? published_score(best_fit_raw(node.state, pod)) : 0;
  }
  TieRule tie_rule() const override { return tie_ == FgdTie::kRandom ? TieRule::kRandom : TieRule::kRank; }

  int share_device(const Candidate& node, const PodShape& pod, std::uint64_t) const override {
    return best_share(node, pod).device;
  }

 private:
  struct Share {
    Score score = -1;
    int device = -1;
  };

  double before(const Candidate& node) const {
    return model_.amount(node.state.cpu_free, node.state.free_devices(), node.machine.model);
  }

  Score gain(double before, const NodeState& after, const Candidate& node, const PodShape& pod) const {
    const double d = before - model_.amount(node.state.cpu_free - pod.cpu, after.free_devices(), node.machine.model);
    return step_ ? stepped(d) : published_score(static_cast<long>(100 / (1 + std::exp(-d / 1000))));
  }

  Score stepped(double d) const {
    constexpr double kZero = kMaxScore / 2;
    return static_cast<Score>(kZero + std::floor(d / static_cast<double>(*step_)));
  }

  // The first device that reaches the best integer score.
  Share best_share(const Candidate& node, const PodShape& pod) const {
    const double whole = before(node);
    NodeState after = node.state;
    Share best;
    for (std::size_t d = 0; d < after.devices; ++d) {
      const std::int16_t left = after.free[d];
      // An earlier device with as much left gives the same score, and comes first.
      const auto earlier = node.state.free.begin() + static_cast<std::ptrdiff_t>(d);
      if (left < pod.gpu_milli || std::find(node.state.free.begin(), earlier, left) != earlier) continue;
      after.free[d] = static_cast<std::int16_t>(left - pod.gpu_milli);
      const Score score = gain(whole, after, node, pod);
      after.free[d] = left;
      if (score > best.score) best = {score, static_cast<int>(d)};
    }
    return best;
  }

  mutable FragmentationModel model_;  // memoises; its answers never change
  FgdTie tie_;
  std::optional<std::int64_t> step_;  // milli-GPU per point; none: the published sigmoid
};
}  // namespace

Result<std::unique_ptr<Policy>> make_fgd(PolicyOptions& options, const TypicalPods& typical) {
  FgdTie tie = FgdTie::kRank;
  options.choice("tie", {{"rank", FgdTie::kRank}, {"best-fit", FgdTie::kBestFit}, {"random", FgdTie::kRandom}}, tie);
  std::optional<std::int64_t> step;
  options.number("step", 1, 100'000, step);
  return options.finish(std::make_unique<Fgd>(typical, tie, step));
}

}  // namespace mortise::placement
