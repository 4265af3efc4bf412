#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/gpu_set.h"
#include "scheduler/topology/pair_matrix.h"
#include "scheduler/topology/plugin_sets.h"
#include "scheduler/topology/set_values.h"

namespace mortise::topology {

/// What the best set of GPUs is; docs/device-sets.md has the formulas.
enum class Objective { kBottleneck, kRing, kTotal, kNvidia };

struct ObjectiveInfo {
  Objective objective;
  std::string_view name;
  std::string_view description;
};

/// Every objective, by name, in the order of the enumeration.
std::span<const ObjectiveInfo> objective_table();
Result<Objective> parse_objective(std::string_view name);
std::string_view name_of(Objective objective);

/// The best sets of GPUs of one kind of machine, for every set of free GPUs.
///
/// A table is made when an objective is first asked for, and then only read: share one object among all nodes of a
/// machine, and among threads. Sets that are asked about hold no GPUs beyond all(). Machines with more than kMaxSetGpus
/// GPUs are refused.
class DeviceSets {
 public:
  /// `nic_distance` holds how far each GPU is from its nearest NIC, smaller is nearer; empty: it does not matter.
  static Result<DeviceSets> of(PairMatrix bandwidth, PairMatrix plugin_scores, std::vector<int> nic_distance = {});

  DeviceSets(DeviceSets&&) noexcept;
  DeviceSets& operator=(DeviceSets&&) noexcept;
  ~DeviceSets();

  int gpus() const;
  GpuSet all() const;

  /// The best `count` of the `free` GPUs; 0 when there are not so many, or when the plugin names no set (kNvidia).
  GpuSet best(Objective objective, GpuSet free, int count) const;

  /// Bandwidths of a set of at most all() GPUs.
  SetValue value(GpuSet set) const;

  /// What NVIDIA's device plugin does, with devices it must include and with every set it may pick.
  const PluginSets& plugin() const;

 private:
  struct Tables;
  explicit DeviceSets(std::unique_ptr<Tables> tables);

  std::unique_ptr<Tables> tables_;
};

}  // namespace mortise::topology
