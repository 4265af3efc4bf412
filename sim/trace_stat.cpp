#include "sim/trace_stat.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "sim/tables.h"

namespace mortise::sim {

namespace {

double seconds(Nanoseconds time) {
  return static_cast<double>(time) / kSecond;
}

/// The smallest value that at least `percent` of the ascending values do not exceed.
Nanoseconds nearest_rank(const std::vector<Nanoseconds>& ascending, std::size_t percent) {
  const std::size_t rank = (ascending.size() * percent + 99) / 100;
  return ascending[rank - 1];
}

std::optional<TraceStat::Durations> durations_of(std::vector<Nanoseconds> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return TraceStat::Durations{nearest_rank(values, 50), nearest_rank(values, 90), nearest_rank(values, 99),
                              values.back()};
}

double gpus(MilliGpu milli) {
  return static_cast<double>(milli) / kWholeGpu;
}
double cores(MilliCpu milli) {
  return static_cast<double>(milli) / 1000;
}

}  // namespace

TraceStat stat_of(const traces::Trace& trace) {
  TraceStat stat;
  stat.trace = trace.name;
  std::set<std::tuple<MilliCpu, Bytes, std::int32_t, MilliGpu, std::string>> requests;
  std::vector<Nanoseconds> durations;
  for (const traces::PodRecord& pod : trace.pods) {
    ++stat.pods;
    ++stat.pods_by_gpus[pod.gpus];
    if (pod.gpus > 0 && pod.gpu_milli < kWholeGpu) ++stat.share_pods;
    if (!pod.gpu_spec.empty()) ++stat.model_pods;
    stat.gpu_demand += pod.gpus * pod.gpu_milli;
    stat.cpu_demand += pod.cpu;
    stat.memory_demand_gib += static_cast<double>(pod.memory) / static_cast<double>(kMiB * 1024);
    requests.emplace(pod.cpu, pod.memory, pod.gpus, pod.gpu_milli, pod.gpu_spec);
    stat.last_submit = std::max(stat.last_submit, pod.submit);
    if (pod.duration) {
      durations.push_back(*pod.duration);
    } else {
      ++stat.durations_unknown;
    }
  }
  for (const traces::GangRecord& gang : trace.gangs) {
    ++stat.gangs;
    stat.gang_pods += gang.size();
    stat.largest_gang = std::max<std::int64_t>(stat.largest_gang, gang.size());
  }
  stat.distinct_requests = static_cast<std::int64_t>(requests.size());
  stat.durations = durations_of(std::move(durations));
  return stat;
}

std::string stat_json(const TraceStat& stat) {
  nlohmann::ordered_json by_gpus = nlohmann::ordered_json::array();
  for (const auto& [count, pods] : stat.pods_by_gpus) by_gpus.push_back({{"gpus", count}, {"pods", pods}});
  nlohmann::ordered_json durations = nullptr;
  if (stat.durations) {
    durations = {{"p50", seconds(stat.durations->p50)},
                 {"p90", seconds(stat.durations->p90)},
                 {"p99", seconds(stat.durations->p99)},
                 {"max", seconds(stat.durations->max)}};
  }
  nlohmann::ordered_json json = {{"trace", stat.trace},
                                 {"pods", stat.pods},
                                 {"pods_by_gpus", std::move(by_gpus)},
                                 {"share_pods", stat.share_pods},
                                 {"model_pods", stat.model_pods},
                                 {"distinct_requests", stat.distinct_requests},
                                 {"gpu_demand", gpus(stat.gpu_demand)},
                                 {"cpu_demand", cores(stat.cpu_demand)},
                                 {"memory_demand_gib", stat.memory_demand_gib},
                                 {"last_submit_s", seconds(stat.last_submit)},
                                 {"durations_unknown", stat.durations_unknown},
                                 {"duration_s", std::move(durations)}};
  if (stat.gangs > 0) {
    json["gangs"] = {{"count", stat.gangs}, {"pods", stat.gang_pods}, {"largest", stat.largest_gang}};
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string stat_text(const TraceStat& stat) {
  std::vector<std::vector<std::string>> rows = {{"pods", fmt::format("{}", stat.pods)}};
  for (const auto& [count, pods] : stat.pods_by_gpus) {
    rows.push_back({count == 0   ? "  without GPU"
                    : count == 1 ? "  with 1 GPU"
                                 : fmt::format("  with {} GPUs", count),
                    fmt::format("{}", pods)});
  }
  rows.push_back({"  with a share of a GPU", fmt::format("{}", stat.share_pods)});
  rows.push_back({"  for certain GPU models", fmt::format("{}", stat.model_pods)});
  rows.push_back({"distinct requests", fmt::format("{}", stat.distinct_requests)});
  rows.push_back({"GPUs asked for", fmt::format("{:.2f}", gpus(stat.gpu_demand))});
  rows.push_back({"CPU cores asked for", fmt::format("{:.2f}", cores(stat.cpu_demand))});
  rows.push_back({"memory asked for, GiB", fmt::format("{:.2f}", stat.memory_demand_gib)});
  rows.push_back({"last submission, s", fmt::format("{:.0f}", seconds(stat.last_submit))});
  rows.push_back({"pods of unknown duration", fmt::format("{}", stat.durations_unknown)});
  if (stat.gangs > 0) {
    rows.push_back({"gangs", fmt::format("{}", stat.gangs)});
    rows.push_back({"  pods in gangs", fmt::format("{}", stat.gang_pods)});
    rows.push_back({"  pods of the largest", fmt::format("{}", stat.largest_gang)});
  }
  if (stat.durations) {
    rows.push_back({"duration p50, s", fmt::format("{:.0f}", seconds(stat.durations->p50))});
    rows.push_back({"duration p90, s", fmt::format("{:.0f}", seconds(stat.durations->p90))});
    rows.push_back({"duration p99, s", fmt::format("{:.0f}", seconds(stat.durations->p99))});
    rows.push_back({"duration max, s", fmt::format("{:.0f}", seconds(stat.durations->max))});
  }
  return fmt::format("trace {}\n\n", stat.trace) + align_columns(rows, {false, true});
}

}  // namespace mortise::sim
