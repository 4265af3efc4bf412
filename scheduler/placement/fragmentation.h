#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/node_state.h"

namespace mortise::placement {

/// A pod as the fragmentation measure sees it (memory plays no part).
struct PodClass {
  MilliCpu cpu = 0;
  MilliGpu gpu_milli = 0;
  std::int32_t gpus = 0;
  std::string gpu_spec;             ///< as spelled; part of the class
  std::vector<std::string> models;  ///< the same, sorted; empty: any
};

/// A class of pods that is typical of a workload, with its share of it.
struct TypicalPod {
  MilliCpu cpu = 0;
  MilliGpu gpu_milli = 0;
  std::int32_t gpus = 0;
  std::vector<ModelId> models;
  double weight = 0;
};

/// The distribution M of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
/// Fragmentation Gradient Descent", USENIX ATC 2023: the most frequent classes that cover 95 % of the pods.
class TypicalPods {
 public:
  TypicalPods() = default;
  /// Model names are interned in `cluster`.
  TypicalPods(std::span<const PodClass> pods, ClusterState& cluster);

  std::span<const TypicalPod> classes() const { return classes_; }

 private:
  std::vector<TypicalPod> classes_;
};

/// F of one node: the milli-GPU a random typical pod could not use. Same source, section 3. Results are memoised.
class FragmentationModel {
 public:
  explicit FragmentationModel(const TypicalPods& typical);
  ~FragmentationModel();

  double amount(MilliCpu cpu_free, std::span<const std::int16_t> free, ModelId model);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// F of the whole cluster, kept incrementally. Held in millionths of a milli-GPU so that the sum is exact and
/// independent of the order in which nodes changed.
class FragmentationMeter {
 public:
  FragmentationMeter(const ClusterState& cluster, const TypicalPods& typical);

  /// Milli-GPU, after everything that happened to the cluster so far.
  double amount();

 private:
  const ClusterState& cluster_;
  FragmentationModel model_;
  std::vector<std::int64_t> per_slot_;
  std::int64_t total_ = 0;
  std::uint64_t seen_ = 0;
};

}  // namespace mortise::placement
