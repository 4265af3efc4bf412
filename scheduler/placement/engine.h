#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/policy.h"
#include "scheduler/placement/request.h"

namespace mortise::placement {

/// The one placement engine of both hosts. Same state, request, policy and seed give the same decision.
/// Externally synchronised; `plan` keeps caches but never changes the cluster.
class Engine {
 public:
  /// `cluster` must outlive the engine.
  Engine(ClusterState& cluster, std::unique_ptr<Policy> policy, std::uint64_t seed);
  ~Engine();

  /// The best node of the whole cluster.
  Decision plan(const PodRequest& pod);
  /// The best of the candidates. When `answers` is given it gets one entry per candidate, in their order.
  Decision plan(const PodRequest& pod, std::span<const NodeId> candidates, std::vector<NodeAnswer>* answers = nullptr);

  /// Makes a planned placement real; an error means the plan is stale and nothing changed. `knowledge` says whether the
  /// pod has the planned devices, or what kubelet may have chosen instead.
  Result<AllocationId> commit(const PodRequest& pod, const Placed& placed, Knowledge knowledge = Knowledge::kExact);

  /// By what the policy chooses whole GPUs on a node; see ClusterState::choose_devices.
  std::optional<topology::Objective> device_objective() const;

  /// How many nodes give each reason, indexed by Reason; kNone counts the nodes that fit.
  std::array<std::int64_t, kReasonCount> reasons(const PodRequest& pod);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mortise::placement
