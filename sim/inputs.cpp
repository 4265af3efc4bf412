#include "sim/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "scheduler/base/rng.h"
#include "sim/cluster_domains.h"
#include "sim/files.h"
#include "sim/source_digest.h"
#include "traces/formats.h"

namespace mortise::sim {

namespace {

Result<std::string> digest_of_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return Error{fmt::format("{}: not a regular file; allowed with --out: files that can be read twice", path)};
  }
  const auto text = read_file(path);
  if (!text) return text.error();
  return fmt::format("{}:{:016x}", text->size(), hash_text(*text));
}

/// Every measure is a share of the GPUs. The notes say what the reader made of nodes that should have some.
Status check_gpus(const kube::ClusterFile& file, const std::string& path) {
  const auto has_gpus = [](const placement::NodeSpec& node) { return node.gpus > 0; };
  if (std::any_of(file.nodes.begin(), file.nodes.end(), has_gpus)) return ok_status();
  std::string why;
  for (const std::string& note : file.notes) why += " (" + note + ")";
  return Error{fmt::format("{}: no GPU on any node{}; allowed: a cluster with GPUs", path, why)};
}

}  // namespace

Result<ClusterInput> load_cluster(const ClusterArguments& arguments, Digest digest) {
  const bool csv_topology = arguments.topology == "catalogue";
  if (!csv_topology && !arguments.topology.empty() && arguments.topology != "none") {
    return Error{fmt::format("--topology '{}'; allowed: none, catalogue", arguments.topology)};
  }
  auto levels = placement::parse_levels(arguments.levels);
  if (!levels) return levels.error();
  auto file = kube::load_cluster_file(
      arguments.cluster,
      {.catalogue = arguments.catalogue, .trace_models = !arguments.live_models, .csv_topology = csv_topology});
  if (!file) return file.error();
  if (const Status status = check_gpus(*file, arguments.cluster); !status) return status.error();
  ClusterInput input;
  input.file = *std::move(file);
  input.levels = *std::move(levels);
  kube::note_unused_levels(input.levels, input.file);
  const std::string& ranks_path = arguments.node_rank;
  if (!ranks_path.empty()) {
    if (const Status status = check_input(ranks_path); !status) return status.error();
    auto ranks = kube::load_node_ranks(ranks_path);
    if (!ranks) return ranks.error();
    input.ranks = *std::move(ranks);
  }
  if (digest == Digest::kNone) return input;
  std::error_code ignored;
  const auto cluster_digest = std::filesystem::exists(arguments.cluster, ignored)
                                  ? digest_of_file(arguments.cluster)
                                  : Result<std::string>(arguments.cluster);
  if (!cluster_digest) return cluster_digest.error();
  input.digest = *cluster_digest;
  if (input.file.catalogue_digest != 0) {
    input.digest += fmt::format(" catalogue {:016x}", input.file.catalogue_digest);
  }
  if (!arguments.levels.empty()) input.digest += " levels " + arguments.levels;
  if (ranks_path.empty()) return input;
  const auto rank_digest = digest_of_file(ranks_path);
  if (!rank_digest) return rank_digest.error();
  input.digest += " ranks " + *rank_digest;
  return input;
}

Result<TraceInput> load_trace(const std::string& path, Digest digest) {
  if (const Status status = check_input(path); !status) return status.error();
  auto trace = traces::read_trace_file(path);
  if (!trace) return trace.error();
  TraceInput input{Workload(*std::move(trace)), ""};
  if (digest == Digest::kNone) return input;
  const auto trace_digest = digest_of_file(path);
  if (!trace_digest) return trace_digest.error();
  input.digest = *trace_digest;
  return input;
}

std::string inputs_digest(const ClusterInput& cluster, const TraceInput& trace, const ArrivalPlan& arrival,
                          const std::string& policy, std::uint64_t seed) {
  const std::string text =
      fmt::format("code {}\ncluster {}\ntrace {} {}\narrival {} {}:{:016x}\npolicy {}\nseed {}\n", source_digest(),
                  cluster.digest, trace.workload.trace().name, trace.digest, arrival.label, arrival.file_text.size(),
                  hash_text(arrival.file_text), policy, seed);
  return fmt::format("{:016x}", hash_text(text));
}

}  // namespace mortise::sim
