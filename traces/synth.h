#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "traces/workload.h"

namespace mortise::traces {

// What a profile says about a published cluster and its workload. Weights are counts: only their ratios matter.

struct NodeShape {
  std::string_view model;
  std::int32_t gpus;
  MilliCpu cpu;
  std::int64_t memory_mib;
  std::uint32_t weight;
};

struct PodClass {
  MilliGpu gpu_milli;
  MilliCpu cpu;
  std::int64_t memory_mib;
  std::uint32_t weight;
};

struct LabelShare {
  std::string_view label;
  std::uint32_t weight;
};

/// One point of a distribution function, in 1/10,000; between two points it is a straight line.
struct Quantile {
  std::int32_t myriadth;
  std::int64_t seconds;
};

/// Pods with the same number of GPUs; the other figures are drawn within the group.
struct PodGroup {
  std::int32_t gpus;
  std::uint32_t weight;
  std::span<const PodClass> classes;
  std::uint32_t never_started;        ///< of the sum of this and `ended`
  std::span<const LabelShare> ended;  ///< status of those that started
  std::span<const LabelShare> qos;
  std::span<const Quantile> durations;  ///< of those that started
};

struct SynthProfile {
  std::string_view name;
  std::string_view description;
  std::span<const NodeShape> nodes;
  std::span<const PodGroup> pods;
  std::span<const Quantile> waits;            ///< from submit to start, of those that started
  std::span<const Quantile> unstarted_lives;  ///< from submit to end, of those that did not
  std::string_view unstarted_status;
};

/// All profiles. A new one is one file in profiles/, one row of this table and one test.
std::span<const SynthProfile* const> synth_profiles();
/// An unknown name is refused with the known ones.
Result<const SynthProfile*> find_profile(std::string_view name);

inline constexpr std::size_t kMaxSynthPods = 50'000'000;

/// Nodes in the profile's proportions, exact to one node per shape (largest remainder); the seed decides their order.
std::vector<NodeRecord> synth_nodes(const SynthProfile& profile, std::size_t count, std::uint64_t seed);

/// `count` pods of all kinds, drawn from the profile, in order of submission. They arrive as a Poisson process
/// (given their number: uniformly) over the time in which their GPU work, demand x duration, is load x capacity.
/// Durations have a long tail, so a small trace spans less time than its longest pods last.
Result<Trace> synth_pods(const SynthProfile& profile, std::size_t count, MilliGpu gpu_capacity, double load,
                         std::uint64_t seed);

/// Pods that are typical where nobody says which are: as in the published trace the policies were studied on. Always
/// the same ones.
Result<Trace> typical_sample();

}  // namespace mortise::traces
