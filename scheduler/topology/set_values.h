#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/gpu_set.h"
#include "scheduler/topology/pair_matrix.h"

namespace mortise::topology {

/// Bandwidths of a set in the unit of its matrix. All are 0 for sets of less than two GPUs.
struct SetValue {
  std::int64_t bottleneck = 0;  ///< the least of its pairs
  std::int64_t ring = 0;        ///< the least along the best ring through all of it; of two GPUs, their pair
  std::int64_t total = 0;       ///< the sum over its pairs
  friend bool operator==(const SetValue&, const SetValue&) = default;
};

/// Why `pairs` cannot be tabulated, if so; `what` names it: too many GPUs, not symmetric, negative, a diagonal,
/// too large to be added up.
Status check_pairs(const PairMatrix& pairs, const char* what);

/// The values of all sets of a machine of at most kMaxSetGpus GPUs.
class SetValues {
 public:
  /// `pairs` has passed check_pairs.
  explicit SetValues(const PairMatrix& pairs);

  int gpus() const { return gpus_; }
  std::size_t count() const { return values_.size(); }
  const SetValue& of(GpuSet set) const { return values_[set]; }

 private:
  void add_rings(const PairMatrix& pairs);

  int gpus_;
  std::vector<SetValue> values_;  // by set
};

}  // namespace mortise::topology
