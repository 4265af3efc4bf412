#include "sim/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mortise::sim {

namespace {

constexpr std::int64_t kCurveStep = 10;  ///< percent of arrived demand between two lines of the curve
constexpr std::size_t kBarWidth = 50;    ///< characters that stand for 100 %

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

/// Of how many seeds, where some have no value.
std::string mean(const std::optional<Spread>& spread, std::int64_t seeds) {
  if (!spread) return "-";
  const std::string text = fmt::format("{:.2f}", spread->mean);
  return spread->seeds == seeds ? text : text + fmt::format(" ({})", spread->seeds);
}

std::string range(const std::optional<Spread>& spread) {
  return spread ? fmt::format("{:.2f}..{:.2f}", spread->min, spread->max) : "-";
}

std::string bar(const std::optional<double>& value) {
  if (!value) return "";
  const double length = std::nearbyint(*value * static_cast<double>(kBarWidth) / 100);
  return std::string(static_cast<std::size_t>(std::clamp(length, 0.0, static_cast<double>(kBarWidth))), '#');
}

/// Cuts a long curve to a screenful.
std::int64_t curve_step(std::size_t rows) {
  constexpr std::int64_t kMaxLines = 30;
  const auto count = static_cast<std::int64_t>(rows);
  return kCurveStep * std::max<std::int64_t>(1, count / (kCurveStep * kMaxLines));
}

std::size_t width_of(std::string_view text) {
  // Continuation bytes of UTF-8 take no column.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string align_columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& numeric) {
  std::vector<std::size_t> widths(numeric.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += (i > 0 ? "  " : "") + (numeric[i] ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string run_text(const ReplayResult& run) {
  std::string text = fmt::format("trace {}, policy {}, seed {}, arrival {}, {} nodes with {} GPUs\n\n", run.trace,
                                 run.policy, run.seed, run.arrival, run.nodes, run.gpus);
  std::vector<std::vector<std::string>> totals = {{"pods arrived", fmt::format("{}", run.pods_arrived)},
                                                  {"pods placed", fmt::format("{}", run.pods_placed)},
                                                  {"pods failed", fmt::format("{}", run.pods_failed)},
                                                  {"allocated, % of GPUs", percent(run.allocation_pct)},
                                                  {"fragmented, % of idle GPUs", percent(run.frag_pct_of_idle)},
                                                  {"fragmented, % of GPUs", percent(run.frag_pct_of_capacity)}};
  if (run.topology) {
    totals.push_back({"pods of 2 and more GPUs", fmt::format("{}", run.topology->pods)});
    totals.push_back({"  slowest pair, % of the best set's", percent(run.topology->bandwidth_pct)});
    totals.push_back({"  best ring, % of the best set's", percent(run.topology->ring_pct)});
    totals.push_back({"  NUMA nodes", percent(run.topology->numa_nodes)});
  }
  if (run.gangs) {
    totals.push_back({"gangs arrived", fmt::format("{}", run.gangs->arrived)});
    totals.push_back({"  placed", fmt::format("{}", run.gangs->placed)});
    totals.push_back({"  failed", fmt::format("{}", run.gangs->failed)});
    for (const GangSpread& level : run.gangs->spread) {
      totals.push_back({fmt::format("  level {}, domains of a gang", level.level), percent(level.domains)});
    }
  }
  text += align_columns(totals, {false, true});
  std::vector<std::vector<std::string>> rows = {{"arrived %", "allocated %", "fragmented %", "allocated"}};
  const std::int64_t step = curve_step(run.curve.size());
  for (const CurveRow& row : run.curve) {
    if (row.arrived_pct % step != 0 && &row != &run.curve.back()) continue;
    rows.push_back({fmt::format("{}", row.arrived_pct), percent(row.allocation_pct), percent(row.frag_pct_of_capacity),
                    bar(row.allocation_pct)});
  }
  return text + "\n" + align_columns(rows, {true, true, true, false});
}

std::string comparison_text(const Comparison& comparison) {
  std::vector<std::string> heading = {"trace", "policy", "seeds"};
  for (const std::int64_t arrived_pct : kMoments) heading.push_back(fmt::format("alloc@{}", arrived_pct));
  for (const char* name : {"final", "min..max", "frag % of idle", "frag % of GPUs"}) heading.emplace_back(name);
  const bool gangs = std::any_of(comparison.summaries.begin(), comparison.summaries.end(),
                                 [](const PolicySummary& summary) { return summary.gangs_placed_pct.has_value(); });
  if (gangs) heading.emplace_back("gangs placed %");
  std::vector<std::vector<std::string>> rows = {heading};
  for (const PolicySummary& summary : comparison.summaries) {
    std::vector<std::string> row = {summary.trace, summary.policy, fmt::format("{}", summary.seeds)};
    for (const Moment& moment : summary.at) row.push_back(mean(moment.allocation_pct, summary.seeds));
    row.push_back(mean(summary.final.allocation_pct, summary.seeds));
    row.push_back(range(summary.final.allocation_pct));
    row.push_back(mean(summary.final.frag_pct_of_idle, summary.seeds));
    row.push_back(mean(summary.final.frag_pct_of_capacity, summary.seeds));
    if (gangs) row.push_back(mean(summary.gangs_placed_pct, summary.seeds));
    rows.push_back(std::move(row));
  }
  std::vector<bool> numeric(heading.size(), true);
  numeric[0] = numeric[1] = false;
  return fmt::format("arrival {}; allocation in % of GPUs, mean over seeds, after so many % of demand arrived\n\n",
                     comparison.arrival) +
         align_columns(rows, numeric);
}

}  // namespace mortise::sim
