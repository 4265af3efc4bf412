#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/base/units.h"

namespace mortise::sim {

/// What held, on average, while the arrived GPU demand was `arrived_pct` percent of the cluster's capacity.
/// A value is empty where no arrival fell into this percent or the two beside it.
struct CurveRow {
  std::int64_t arrived_pct = 0;
  std::optional<double> allocation_pct;
  std::optional<double> frag_pct_of_idle;
  std::optional<double> frag_pct_of_capacity;

  friend bool operator==(const CurveRow&, const CurveRow&) = default;
};

/// Rounds to hundredths, halves to even.
double round_hundredths(double value);

/// 100 * part / whole rounded to an integer, halves to even; whole > 0.
std::int64_t round_percent(MilliGpu part, MilliGpu whole);

/// Bins the states after each arrival by arrived demand, as the published study does (Weng et al., USENIX ATC 2023,
/// artifact scripts): allocation is rounded to hundredths per event and per bin, fragmentation of idle capacity is
/// not rounded, fragmentation of all capacity is rounded per bin. An empty bin takes the mean of the bins beside it.
class CurveBuilder {
 public:
  /// `capacity` > 0.
  explicit CurveBuilder(MilliGpu capacity) : capacity_(capacity) {}

  /// The state after one arrival: GPU demand arrived so far, GPU capacity in use, fragmentation.
  void add(MilliGpu arrived, MilliGpu used, double frag);

  /// One row per integer percent from 0 to the last arrival.
  std::vector<CurveRow> rows() const;

 private:
  struct Series {
    double sum = 0;
    std::int64_t count = 0;
    void add(double value);
    std::optional<double> mean() const;
  };
  struct Bin {
    Series allocation;
    Series frag_of_idle;
    Series frag_of_capacity;
  };

  MilliGpu capacity_;
  std::vector<Bin> bins_;
};

/// The row of one percent; just beyond the last row the rule for empty bins holds, further away all is empty.
CurveRow curve_at(const std::vector<CurveRow>& rows, std::int64_t arrived_pct);

}  // namespace mortise::sim
