#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "scheduler/base/clock.h"
#include "sim/cluster_options.h"
#include "sim/compare.h"
#include "sim/files.h"
#include "sim/inputs.h"
#include "sim/option_values.h"
#include "sim/progress.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/run_store.h"
#include "sim/tables.h"
#include "sim/verbs.h"

namespace mortise::sim {

namespace {

struct ReplayOptions {
  ClusterArguments cluster;
  std::string trace;
  std::string policy;
  std::string seed = "42";
  std::string arrival = "inflate:1.3";
  std::string placements;
  std::string out;
  bool json = false;
  bool timings = false;
};

struct ReplayInputs {
  ClusterInput cluster;
  TraceInput trace;
  ArrivalPlan arrival;
  std::uint64_t seed = 0;
};

Result<ReplayInputs> load_inputs(const ReplayOptions& options) {
  const auto seed = parse_number(options.seed, "--seed");
  if (!seed) return seed.error();
  // Before the files are read: a misspelt name should not cost a minute.
  if (const Status status = check_policies({options.policy}); !status) return status.error();
  if (!options.placements.empty()) {
    const std::string inputs[] = {options.cluster.cluster, options.trace, options.cluster.node_rank};
    if (const Status status = check_output(options.placements, inputs); !status) return status.error();
  }
  const Digest digest = options.out.empty() ? Digest::kNone : Digest::kTaken;
  auto arrival = load_arrival(options.arrival);
  if (!arrival) return arrival.error();
  auto cluster = load_cluster(options.cluster, digest);
  if (!cluster) return cluster.error();
  auto trace = load_trace(options.trace, digest);
  if (!trace) return trace.error();
  return ReplayInputs{*std::move(cluster), *std::move(trace), *std::move(arrival), *seed};
}

/// Runs the simulation; the placements, if wanted, are written while it runs.
Result<ReplayResult> simulate(const ReplayOptions& options, const ReplayInputs& inputs, PhaseTimes& times) {
  Progress progress("replay", "arrivals");
  ReplayHooks hooks;
  hooks.times = &times;
  hooks.on_progress = [&](std::uint64_t arrived, std::uint64_t of) { progress.at(arrived, of); };
  const ReplaySpec spec{
      inputs.cluster.file, inputs.cluster.rank_table(), inputs.trace.workload, inputs.arrival, options.policy,
      inputs.seed,         inputs.cluster.levels};
  if (options.placements.empty()) return replay(spec, hooks);
  std::optional<ReplayResult> result;
  const Status written = write_file(options.placements, [&](std::ostream& out) {
    hooks.placements = &out;
    auto run = replay(spec, hooks);
    if (!run) return Status(run.error());
    result = *std::move(run);
    return ok_status();
  });
  if (!written) return written.error();
  return *std::move(result);
}

Result<int> run_replay(const ReplayOptions& options) {
  const SteadyClock clock;
  const Nanoseconds started = clock.now();
  const auto inputs = load_inputs(options);
  if (!inputs) return inputs.error();
  const RunStore store(options.out);
  if (!options.out.empty()) {
    if (const Status status = store.open(); !status) return status.error();
  }
  Timings timings;
  timings.read = static_cast<double>(clock.now() - started) / kSecond;
  const auto run = simulate(options, *inputs, timings.phases);
  if (!run) return run.error();
  if (!options.out.empty()) {
    const std::string digest =
        inputs_digest(inputs->cluster, inputs->trace, inputs->arrival, options.policy, inputs->seed);
    if (const Status status = store.save(*run, digest); !status) return status.error();
  }
  for (const std::string& note : inputs->cluster.file.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  if (run->pods_arrived == 0) {
    std::fprintf(stderr, "note: nothing arrived: arrival %s leaves none of the trace's pods and gangs\n",
                 run->arrival.c_str());
  }
  const std::optional<Timings> shown = options.timings ? std::optional(timings) : std::nullopt;
  const Status status = print(options.json ? run_json(*run, shown) + "\n" : run_text(*run));
  if (!status) return status.error();
  if (options.timings && !options.json) {
    std::fprintf(stderr, "read %.3f s, prepare %.3f s, replay %.3f s\n", timings.read, timings.phases.prepare,
                 timings.phases.replay);
  }
  return kExitDone;
}

}  // namespace

VerbRun add_replay(CLI::App& app) {
  const auto options = std::make_shared<ReplayOptions>();
  add_cluster_options(app, options->cluster);
  app.add_option("--trace", options->trace, "Pod list of a trace")->type_name("FILE")->required();
  app.add_option("--policy", options->policy, "Placement policy; 'mortise policies' lists them")
      ->type_name("NAME")
      ->required();
  app.add_option("--seed", options->seed, "Seed of arrivals, tie order and random choices")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--arrival", options->arrival, fmt::format("Order of arrivals: {}", traces::arrival_forms()))
      ->type_name("FORM")
      ->capture_default_str();
  app.add_option("--placements", options->placements, "Write where each pod went to this file")->type_name("FILE");
  app.add_option("--out", options->out, "Write the result into this folder too, where 'compare --out' finds it")
      ->type_name("DIR");
  app.add_flag("--json", options->json, "One JSON document on stdout");
  app.add_flag("--timings", options->timings, "Say how long the phases took");
  return [options] { return run_replay(*options); };
}

}  // namespace mortise::sim
