#include "sim/curve.h"

#include <cmath>

namespace mortise::sim {

namespace {

/// The mean of what two neighbours have, or nothing.
std::optional<double> fill(const std::optional<double>& left, const std::optional<double>& right) {
  if (left && right) return (*left + *right) / 2;
  return left ? left : right;
}

}  // namespace

double round_hundredths(double value) {
  return std::nearbyint(value * 100) / 100;
}

std::int64_t round_percent(MilliGpu part, MilliGpu whole) {
  const std::int64_t scaled = 100 * part;
  const std::int64_t quotient = scaled / whole;
  const std::int64_t twice_rest = 2 * (scaled % whole);
  const bool up = twice_rest > whole || (twice_rest == whole && quotient % 2 != 0);
  return quotient + (up ? 1 : 0);
}

void CurveBuilder::Series::add(double value) {
  sum += value;
  ++count;
}

std::optional<double> CurveBuilder::Series::mean() const {
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

void CurveBuilder::add(MilliGpu arrived, MilliGpu used, double frag) {
  const auto bin_index = static_cast<std::size_t>(round_percent(arrived, capacity_));
  if (bin_index >= bins_.size()) bins_.resize(bin_index + 1);
  Bin& bin = bins_[bin_index];
  const auto capacity = static_cast<double>(capacity_);
  bin.allocation.add(round_hundredths(100 * static_cast<double>(used) / capacity));
  bin.frag_of_capacity.add(100 * frag / capacity);
  // A full cluster has no idle GPU that could be a fragment: the ratio has no value there.
  if (used < capacity_) bin.frag_of_idle.add(100 * frag / static_cast<double>(capacity_ - used));
}

std::vector<CurveRow> CurveBuilder::rows() const {
  std::vector<CurveRow> means(bins_.size());
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    means[i].arrived_pct = static_cast<std::int64_t>(i);
    means[i].frag_pct_of_idle = bins_[i].frag_of_idle.mean();
    if (const auto mean = bins_[i].allocation.mean()) means[i].allocation_pct = round_hundredths(*mean);
    if (const auto mean = bins_[i].frag_of_capacity.mean()) means[i].frag_pct_of_capacity = round_hundredths(*mean);
  }
  std::vector<CurveRow> rows = means;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CurveRow left = i > 0 ? means[i - 1] : CurveRow{};
    const CurveRow right = i + 1 < means.size() ? means[i + 1] : CurveRow{};
    CurveRow& row = rows[i];
    if (!row.allocation_pct) row.allocation_pct = fill(left.allocation_pct, right.allocation_pct);
    if (!row.frag_pct_of_idle) row.frag_pct_of_idle = fill(left.frag_pct_of_idle, right.frag_pct_of_idle);
    if (!row.frag_pct_of_capacity) {
      row.frag_pct_of_capacity = fill(left.frag_pct_of_capacity, right.frag_pct_of_capacity);
    }
  }
  return rows;
}

CurveRow curve_at(const std::vector<CurveRow>& rows, std::int64_t arrived_pct) {
  CurveRow row;
  const auto size = static_cast<std::int64_t>(rows.size());
  if (arrived_pct >= 0 && arrived_pct < size) return rows[static_cast<std::size_t>(arrived_pct)];
  // The last row always holds data: it is where the last arrival fell.
  if (size > 0 && arrived_pct == size) row = rows.back();
  row.arrived_pct = arrived_pct;
  return row;
}

}  // namespace mortise::sim
