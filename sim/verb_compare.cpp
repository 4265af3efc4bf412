#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sim/cluster_options.h"
#include "sim/compare.h"
#include "sim/inputs.h"
#include "sim/option_values.h"
#include "sim/progress.h"
#include "sim/report.h"
#include "sim/tables.h"
#include "sim/verbs.h"

namespace mortise::sim {

namespace {

constexpr std::uint64_t kMaxThreads = 1024;

struct CompareOptions {
  ClusterArguments cluster;
  std::vector<std::string> traces;
  std::string policies;
  std::string seeds;
  std::string arrival = "inflate:1.3";
  std::string threads;
  std::string shard = "1/1";
  std::string out;
  bool json = false;
};

struct CompareInputs {
  std::vector<std::string> policies;
  std::vector<std::uint64_t> seeds;
  std::size_t threads = 1;
  Shard shard;
  ArrivalPlan arrival;
  ClusterInput cluster;
  std::vector<TraceInput> traces;
};

Result<std::size_t> parse_threads(const std::string& text) {
  if (text.empty()) return std::max<std::size_t>(1, std::thread::hardware_concurrency());
  const auto threads = parse_count(text, "--threads", kMaxThreads);
  if (!threads) return threads.error();
  return static_cast<std::size_t>(*threads);
}

Status parse_values(const CompareOptions& options, CompareInputs& inputs) {
  auto policies = parse_names(options.policies, "--policies");
  if (!policies) return policies.error();
  inputs.policies = *std::move(policies);
  auto seeds = parse_seeds(options.seeds);
  if (!seeds) return seeds.error();
  inputs.seeds = *std::move(seeds);
  const auto threads = parse_threads(options.threads);
  if (!threads) return threads.error();
  inputs.threads = *threads;
  const auto shard = parse_shard(options.shard);
  if (!shard) return shard.error();
  inputs.shard = *shard;
  return ok_status();
}

Result<CompareInputs> load_inputs(const CompareOptions& options) {
  CompareInputs inputs;
  if (const Status status = parse_values(options, inputs); !status) return status.error();
  if (const Status status = check_policies(inputs.policies); !status) return status.error();
  const Digest digest = options.out.empty() ? Digest::kNone : Digest::kTaken;
  auto arrival = load_arrival(options.arrival);
  if (!arrival) return arrival.error();
  inputs.arrival = *std::move(arrival);
  auto cluster = load_cluster(options.cluster, digest);
  if (!cluster) return cluster.error();
  inputs.cluster = *std::move(cluster);
  for (const std::string& path : options.traces) {
    auto trace = load_trace(path, digest);
    if (!trace) return trace.error();
    inputs.traces.push_back(*std::move(trace));
  }
  return inputs;
}

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

/// While runs are kept in files, the first Ctrl-C lets the runs in progress finish; the second ends the program.
void finish_runs_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

/// Ends the program the way Ctrl-C does, so that a calling script sees an interrupt and not a failure.
void die_of_interrupt(const std::string& message) {
  std::fprintf(stderr, "mortise: %s\n", message.c_str());
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

Result<int> run_compare(const CompareOptions& options) {
  const auto inputs = load_inputs(options);
  if (!inputs) return inputs.error();
  const CompareSpec spec{inputs->cluster, inputs->traces,  inputs->arrival, inputs->policies,
                         inputs->seeds,   inputs->threads, inputs->shard,   options.out};
  if (!options.out.empty()) finish_runs_on_interrupt();
  Result<Comparison> comparison = [&] {
    Progress progress("compare", "runs");
    std::atomic<std::uint64_t> done = 0;
    CompareHooks hooks;
    hooks.on_run_done = [&] { progress.at(++done, run_count(spec)); };
    hooks.on_note = [&](const std::string& note) { progress.note("note: " + note); };
    hooks.stop = &interrupted;
    return compare(spec, hooks);
  }();
  if (!comparison) {
    if (interrupted) die_of_interrupt(comparison.message() + "; the same command goes on from there");
    return comparison.error();
  }
  for (const std::string& note : inputs->cluster.file.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  const Status status = print(options.json ? comparison_json(*comparison) + "\n" : comparison_text(*comparison));
  if (!status) return status.error();
  return kExitDone;
}

}  // namespace

VerbRun add_compare(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  add_cluster_options(app, options->cluster);
  app.add_option("--trace", options->traces, "Pod lists of one or more traces")->type_name("FILE")->required();
  app.add_option("--policies", options->policies, "Policies, joined by commas; 'mortise policies' lists them")
      ->type_name("NAMES")
      ->required();
  app.add_option("--seeds", options->seeds, "Seeds: 42..51, or 42,45")->type_name("LIST")->required();
  app.add_option("--arrival", options->arrival, fmt::format("Order of arrivals: {}", traces::arrival_forms()))
      ->type_name("FORM")
      ->capture_default_str();
  app.add_option("--threads", options->threads, "How many runs at a time; default: as many as there are cores")
      ->type_name("N");
  app.add_option("--shard", options->shard, "Do only part i of n of the runs")->type_name("i/n")->capture_default_str();
  app.add_option("--out", options->out, "Keep each run in this folder, and do not repeat those that are there")
      ->type_name("DIR");
  app.add_flag("--json", options->json, "One JSON document on stdout");
  return [options] { return run_compare(*options); };
}

}  // namespace mortise::sim
