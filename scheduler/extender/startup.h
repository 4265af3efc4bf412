#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/extender/gang_feed.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/domains.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {

/// Where the cluster and the policy come from.
struct StartOptions {
  std::string cluster;                      ///< see kube::load_cluster_file; empty: a cluster without nodes
  std::string policy = "fgd:tie=best-fit";  ///< see placement::make_policy
  std::uint64_t seed = 1;
  std::string node_rank;       ///< file; empty: from the seed
  std::string typical;         ///< trace whose pods are typical; empty: a generated one
  std::string levels = {};     ///< see placement::parse_levels; empty: as the nodes' labels tell
  std::string catalogue = {};  ///< folder of the machine catalogue; empty: the one that came with the program
};

/// A cluster read from a file and the engine on it.
struct LoadedCluster {
  std::unique_ptr<placement::ClusterState> state;
  std::unique_ptr<placement::Engine> engine;
  std::unique_ptr<placement::Domains> domains;
  std::unique_ptr<placement::Policy> gang_policy;  ///< the engine's once more
  std::unique_ptr<placement::FragmentationMeter> fragmentation;
  std::unique_ptr<Bookings> bookings;     ///< with the pods that hold their place already
  std::vector<kube::Pod> placed;          ///< bound pods of the file, for GangFeed
  std::vector<kube::GroupObject> groups;  ///< likewise
  std::vector<std::string> notes;         ///< what was skipped and why, one line each
};

/// An error is one line that names the file or option.
Result<LoadedCluster> load(const StartOptions& options);

/// The gangs of the file: its group objects, and the members that hold their place.
void tell_gangs(const LoadedCluster& cluster, GangFeed& feed);

}  // namespace mortise::extender
