#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/placement/topology_levels.h"
#include "sim/arrivals.h"
#include "sim/workload.h"

namespace mortise::sim {

/// Whether a digest of the bytes is taken, for results that are kept in files. It needs a second reading, so the
/// input must then be a regular file and not a pipe.
enum class Digest { kNone, kTaken };

/// A cluster with the tie order of its nodes.
struct ClusterInput {
  kube::ClusterFile file;
  std::optional<kube::NodeRanks> ranks;
  std::vector<placement::TopologyLevel> levels;  ///< above the nodes; empty: as their labels tell
  std::string digest;

  const kube::NodeRanks* rank_table() const { return ranks ? &*ranks : nullptr; }
};

struct TraceInput {
  Workload workload;
  std::string digest;
};

/// What the options of a verb say of its cluster.
struct ClusterArguments {
  std::string cluster;
  std::string catalogue = {};  ///< empty: the one that came with the program
  std::string topology = {};   ///< of the nodes of a CSV: none (also if empty), or catalogue
  std::string levels = {};     ///< NAME=LABEL,...; empty: as the nodes' labels tell
  bool live_models = false;    ///< GPU models of catalogue machines as node labels spell them, not as traces do
  std::string node_rank = {};  ///< empty: the tie order is drawn from the seed
};

Result<ClusterInput> load_cluster(const ClusterArguments& arguments, Digest digest);
Result<TraceInput> load_trace(const std::string& path, Digest digest);

/// Stands for everything a run depends on: the contents of its files, its options and this program's code.
std::string inputs_digest(const ClusterInput& cluster, const TraceInput& trace, const ArrivalPlan& arrival,
                          const std::string& policy, std::uint64_t seed);

}  // namespace mortise::sim
