#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/gang_objects.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/request.h"
#include "scheduler/placement/topology_levels.h"

namespace mortise::kube {

/// A pod that already holds its place in a snapshot.
struct BoundPod {
  placement::PodRequest request;
  std::string node;
  placement::DeviceSet devices;                     ///< from our annotation; empty: not known
  std::optional<Nanoseconds> start = std::nullopt;  ///< status.startTime, since 1970; empty: not started
};

using Labels = std::map<std::string, std::string>;

/// What a `--cluster` argument describes.
struct ClusterFile {
  std::vector<placement::NodeSpec> nodes;
  std::vector<Labels> labels;  ///< of each node
  std::vector<BoundPod> pods;
  std::vector<Pod> placed;             ///< Pod objects of `pods`, as far as the file has such
  std::vector<GroupObject> groups;     ///< those that say how large gangs are
  std::vector<std::string> notes;      ///< what was skipped and why, one line each
  std::uint64_t catalogue_digest = 0;  ///< stands for the machine catalogue, where it was needed; else 0
};

struct ClusterOptions {
  std::string catalogue = {};  ///< folder of the machine catalogue; empty: the one that came with the program
  bool trace_models = false;   ///< GPU models of catalogue machines as traces spell them, not as node labels do
  bool csv_topology = false;   ///< nodes of a CSV are the one catalogue machine of their GPU model and number
};

/// Reads what docs/clusters.md describes, told apart by content: an openb node CSV; a Kubernetes List (JSON or YAML;
/// nodes, with their pods and NodeResourceTopology objects where it has them; a single Node, too); a file of node
/// pools. If there is no such file, pools of catalogue machines as MACHINE:COUNT,... . Errors name the file and, where
/// there is one, the line.
Result<ClusterFile> load_cluster_file(const std::string& cluster, const ClusterOptions& options = {});

/// Adds a note for each level whose label no node has: every node is then a domain of its own there.
void note_unused_levels(std::span<const placement::TopologyLevel> levels, ClusterFile& file);

/// Node name -> place in the tie order. From a file of `name rank` lines, each node once.
using NodeRanks = std::map<std::string, std::uint64_t, std::less<>>;
Result<NodeRanks> load_node_ranks(const std::string& path);

/// The rank of a node when no file gives one: a permutation of the names that depends on the seed only, so a node
/// added later does not reorder the others.
std::uint64_t seeded_rank(std::uint64_t seed, std::string_view node_name);

/// Builds the state: nodes with their ranks (`ranks` may be null), then the bound pods (devices that are not known
/// are taken lowest index first). An error names the node or pod.
Result<std::unique_ptr<placement::ClusterState>> build_cluster(const ClusterFile& file, const NodeRanks* ranks,
                                                               std::uint64_t seed);

}  // namespace mortise::kube
