#include "sim/topo_best.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/topology/bandwidth.h"
#include "scheduler/topology/graph_sets.h"
#include "sim/option_values.h"

namespace mortise::sim {
namespace {

using topology::DeviceSets;
using topology::GpuSet;
using topology::NodeGraph;
using topology::Objective;

Result<std::vector<int>> parse_counts(const std::vector<std::string>& lists) {
  std::vector<int> counts;
  for (const std::string& list : lists) {
    for (const std::string_view part : split(list, ',')) {
      const auto count = parse_number(part, "--best");
      if (!count || *count < 1 || *count > topology::kMaxGpus) {
        return Error{fmt::format("--best {}: allowed are numbers of GPUs from 1 to {}, such as 2 or 2,4,8", quote(part),
                                 topology::kMaxGpus)};
      }
      if (std::find(counts.begin(), counts.end(), static_cast<int>(*count)) != counts.end()) {
        return Error{fmt::format("--best: {} is asked for twice", *count)};
      }
      counts.push_back(static_cast<int>(*count));
    }
  }
  return counts;
}

Result<GpuSet> parse_free(const std::vector<std::string>& lists, const NodeGraph& graph) {
  const auto& gpus = graph.machine().gpus;
  GpuSet free = 0;
  for (const std::string& list : lists) {
    for (const std::string_view part : split(list, ',')) {
      const auto found =
          std::find_if(gpus.begin(), gpus.end(), [&](const auto& gpu) { return std::to_string(gpu.index) == part; });
      if (found == gpus.end()) {
        std::string known;
        for (const auto& gpu : gpus) known += fmt::format("{}{}", known.empty() ? "" : ",", gpu.index);
        return Error{fmt::format("--free {}: no such GPU; allowed: {}", quote(part), known)};
      }
      const GpuSet gpu = topology::gpu_bit(static_cast<int>(found - gpus.begin()));
      if ((free & gpu) != 0) return Error{fmt::format("--free: GPU {} is named twice", part)};
      free |= gpu;
    }
  }
  return free;
}

bool is_known(const NodeGraph& graph, GpuSet set) {
  bool known = true;
  topology::for_each_gpu(set, [&](int a) {
    topology::for_each_gpu(set, [&](int b) { known = known && (a >= b || graph.mb_per_s(a, b)); });
  });
  return known;
}

RatedSet rate(const NodeGraph& graph, const DeviceSets& sets, GpuSet set) {
  if (set == 0 || !is_known(graph, set)) return {set, {}};
  return {set, sets.value(set)};
}

BestSet answer(const NodeGraph& graph, const DeviceSets& sets, const BestAnswer& asked, int count) {
  const bool nvidia = asked.objective == Objective::kNvidia;
  BestSet best;
  best.count = count;
  best.chosen = rate(graph, sets, sets.best(asked.objective, asked.free, count));
  best.all_free = rate(graph, sets, sets.best(nvidia ? Objective::kBottleneck : asked.objective, sets.all(), count));
  const int free = topology::size_of(asked.free);
  if (free < count) {
    best.why_none = fmt::format("{} {} free", free, free == 1 ? "GPU is" : "GPUs are");
  } else if (best.chosen.gpus == 0) {
    best.why_none = "the device plugin fails: its choice holds padding, and kubelet then refuses the pod";
  }
  if (nvidia) {
    const topology::PluginOutcomes outcomes = sets.plugin().outcomes(asked.free, 0, count);
    best.may_pick = static_cast<int>(outcomes.sets.size());
    best.may_fail = outcomes.may_fail;
  }
  if (best.chosen.value && best.all_free.value) {
    const std::int64_t most = figure_of(asked.objective, *best.all_free.value);
    if (most > 0) {
      best.share = static_cast<double>(figure_of(asked.objective, *best.chosen.value)) / static_cast<double>(most);
    }
  }
  return best;
}

// What the ranking had to assume.
std::vector<std::string> notes_on(const NodeGraph& graph, Objective objective) {
  std::vector<std::string> notes;
  const auto& gpus = graph.machine().gpus;
  if (!graph.machine().gpus_numbered) {
    notes.emplace_back("the source only counts the GPUs of each NUMA node: the indexes of the best sets are no places");
  }
  const auto unknown_model = [](const auto& gpu) { return topology::find_gpu_model(gpu.model) == nullptr; };
  if (std::any_of(gpus.begin(), gpus.end(), unknown_model)) {
    const bool ranked = objective != Objective::kNvidia;
    notes.push_back(
        fmt::format("GPUs of unknown model have no MB/s{}; --gpu names the model where the source does not",
                    ranked ? fmt::format("; their sets are ranked as if NVLinks carried {} MB/s each and "
                                         "PCIe were of generation {}",
                                         topology::kAssumedModel.nvlink_mb_per_s, topology::kAssumedModel.pcie_gen)
                           : std::string()));
  }
  int silent = 0;
  for (int a = 0; a < graph.gpu_count(); ++a) {
    for (int b = a + 1; b < graph.gpu_count(); ++b) silent += to_text(graph.link(a, b)).empty() ? 1 : 0;
  }
  if (silent > 0) {
    notes.push_back(
        fmt::format("{} of the pairs of GPUs have no known link: they are ranked by NICs, NUMA nodes and "
                    "CPUs, else as the farthest, and have no MB/s",
                    silent));
  }
  return notes;
}

}  // namespace

std::int64_t figure_of(Objective objective, const topology::SetValue& value) {
  if (objective == Objective::kRing) return value.ring;
  if (objective == Objective::kTotal) return value.total;
  return value.bottleneck;
}

Result<BestAnswer> find_best(const NodeGraph& graph, const BestOptions& options) {
  BestAnswer found;
  const auto counts = parse_counts(options.counts);
  if (!counts) return counts.error();
  const auto objective = topology::parse_objective(options.objective);
  if (!objective) return Error{"--objective: " + objective.message()};
  if (graph.gpu_count() > topology::kMaxSetGpus) {
    return Error{fmt::format("--best: the machine has {} GPUs; allowed: machines of up to {}", graph.gpu_count(),
                             topology::kMaxSetGpus)};
  }
  const auto sets = topology::device_sets_of(graph);
  if (!sets) return Error{"--best: " + sets.message()};
  const auto free = options.free.empty() ? Result<GpuSet>(sets->all()) : parse_free(options.free, graph);
  if (!free) return free.error();
  found.objective = *objective;
  found.free = *free;
  found.notes = notes_on(graph, found.objective);
  for (const int count : *counts) found.sets.push_back(answer(graph, *sets, found, count));
  return found;
}

}  // namespace mortise::sim
