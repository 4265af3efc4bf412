#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "sim/cluster_options.h"
#include "sim/files.h"
#include "sim/inputs.h"
#include "sim/option_values.h"
#include "sim/trace_stat.h"
#include "sim/verbs.h"
#include "traces/formats.h"
#include "traces/node_csv.h"
#include "traces/openb.h"
#include "traces/synth.h"

namespace mortise::sim {

namespace {

constexpr std::uint64_t kMaxSynthNodes = 1'000'000;

Result<int> print_stat(const traces::Trace& trace, bool json) {
  const TraceStat stat = stat_of(trace);
  if (const Status status = print(json ? stat_json(stat) + "\n" : stat_text(stat)); !status) return status.error();
  return kExitDone;
}

struct StatOptions {
  std::string trace;
  bool json = false;
};

Result<int> run_stat(const StatOptions& options) {
  if (const Status status = check_input(options.trace); !status) return status.error();
  const auto trace = traces::read_trace_file(options.trace);
  if (!trace) return trace.error();
  return print_stat(*trace, options.json);
}

struct SynthOptions {
  std::string like;
  std::string count;
  ClusterArguments cluster;
  std::string nodes;
  std::string cluster_out;
  std::string load = "0.85";
  std::string seed = "42";
  std::string out;
  bool json = false;
};

Status check_files(const SynthOptions& options) {
  const bool has_nodes = !options.nodes.empty();
  if (options.cluster.cluster.empty() != has_nodes || has_nodes != !options.cluster_out.empty()) {
    return Error{"the trace needs a cluster to load; allowed: --cluster, or --nodes N with --cluster-out FILE"};
  }
  const std::string others[] = {options.cluster.cluster, options.cluster_out};
  if (const Status status = check_output(options.out, others); !status) return status.error();
  return ok_status();
}

/// GPU capacity of the cluster that is named, or of one that is made and written.
Result<MilliGpu> find_or_make_cluster(const SynthOptions& options, const traces::SynthProfile& profile,
                                      std::uint64_t seed) {
  MilliGpu capacity = 0;
  if (!options.cluster.cluster.empty()) {
    const auto cluster = load_cluster(options.cluster, Digest::kNone);
    if (!cluster) return cluster.error();
    for (const placement::NodeSpec& node : cluster->file.nodes) capacity += node.gpus * kWholeGpu;
    return capacity;
  }
  const auto count = parse_count(options.nodes, "--nodes", kMaxSynthNodes);
  if (!count) return count.error();
  const std::vector<traces::NodeRecord> nodes = traces::synth_nodes(profile, *count, seed);
  for (const traces::NodeRecord& node : nodes) capacity += node.gpus * kWholeGpu;
  const Status written = write_file(options.cluster_out, [&](std::ostream& out) {
    traces::write_node_csv(out, nodes);
    return ok_status();
  });
  if (!written) return written.error();
  return capacity;
}

Result<int> run_synth(const SynthOptions& options) {
  const auto profile = traces::find_profile(options.like);
  if (!profile) return profile.error();
  const auto count = parse_count(options.count, "--count", traces::kMaxSynthPods);
  if (!count) return count.error();
  const auto load = parse_positive(options.load, "--load", 1000);
  if (!load) return load.error();
  const auto seed = parse_number(options.seed, "--seed");
  if (!seed) return seed.error();
  if (const Status status = check_files(options); !status) return status.error();
  const auto capacity = find_or_make_cluster(options, **profile, *seed);
  if (!capacity) return capacity.error();
  auto trace = traces::synth_pods(**profile, *count, *capacity, *load, *seed);
  if (!trace) return trace.error();
  trace->name = traces::openb_trace_name(options.out);
  const Status written = write_file(options.out, [&](std::ostream& out) {
    traces::write_openb_pods(out, trace->pods);
    return ok_status();
  });
  if (!written) return written.error();
  return print_stat(*trace, options.json);
}

std::string profile_names() {
  std::string names;
  for (const traces::SynthProfile* profile : traces::synth_profiles()) {
    names.append(names.empty() ? "" : "; ").append(profile->name).append(": ").append(profile->description);
  }
  return names;
}

VerbRun add_stat(CLI::App& app) {
  const auto options = std::make_shared<StatOptions>();
  app.add_option("FILE", options->trace, "Pod list of a trace")->required();
  app.add_flag("--json", options->json, "One JSON document on stdout");
  return [options] { return run_stat(*options); };
}

VerbRun add_synth(CLI::App& app) {
  const auto options = std::make_shared<SynthOptions>();
  app.add_option("--like", options->like, fmt::format("What the pods are like ({})", profile_names()))
      ->type_name("NAME")
      ->required();
  app.add_option("--count", options->count, "How many pods, those without GPUs included")->type_name("N")->required();
  add_node_options(app, options->cluster);
  app.add_option("--nodes", options->nodes, "Make a cluster of so many nodes as well")->type_name("N");
  app.add_option("--cluster-out", options->cluster_out, "Write the made cluster to this file")->type_name("FILE");
  app.add_option("--load", options->load, "GPU time asked for, as a share of what the cluster has")
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Seed of every draw")->type_name("N")->capture_default_str();
  app.add_option("--out", options->out, "Write the trace to this file")->type_name("FILE")->required();
  app.add_flag("--json", options->json, "One JSON document on stdout");
  return [options] { return run_synth(*options); };
}

}  // namespace

VerbRun add_trace(CLI::App& app) {
  app.require_subcommand(0, 1);
  CLI::App* stat = app.add_subcommand("stat", "What a trace holds, in figures");
  CLI::App* synth = app.add_subcommand("synth", "Make a trace, and a cluster if wanted, like a published one");
  VerbRun run_of_stat = add_stat(*stat);
  VerbRun run_of_synth = add_synth(*synth);
  return [=]() -> Result<int> {
    if (stat->parsed()) return run_of_stat();
    if (synth->parsed()) return run_of_synth();
    return Error{"trace: nothing to do; allowed: stat, synth"};
  };
}

}  // namespace mortise::sim
