#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/kubelet_settings.h"
#include "scheduler/topology/sources/lazy_catalogue.h"

namespace mortise::kube {

inline constexpr int kMaxPoolNodes = 1'000'000;  ///< of all pools together

/// Alike nodes of a cluster that is described rather than listed.
struct NodePool {
  std::string where;  ///< start of messages
  const topology::CatalogueMachine* machine = nullptr;
  int count = 0;
  std::string prefix;  ///< of node names
  std::string model;   ///< of the GPUs; empty: the machine's
  Labels labels;
  KubeletSettings kubelet;
  std::string cpu;  ///< allocatable, as quantities; empty: what the machine has
  std::string memory;
  std::string pods;
  int rack_size = 0;  ///< nodes in a rack; 0: racks are not known
  std::string rack_label;
};

/// Whether the text can be meant as MACHINE:COUNT,... rather than as the name of a file.
bool looks_like_pool_list(std::string_view text);
/// Reads "dgx-a100:64,t4-2:10".
Result<std::vector<NodePool>> read_pool_list(std::string_view text, topology::LazyCatalogue& catalogue);

bool looks_like_pool_file(std::string_view text);
/// Reads our own YAML form; docs/clusters.md has its keys. Messages start with FILE:LINE.
Result<std::vector<NodePool>> read_pool_file(const std::string& text, const std::string& file,
                                             topology::LazyCatalogue& catalogue);

/// The nodes, named PREFIX-0000 and so on; pools with one prefix are numbered through.
Result<ClusterFile> expand_pools(const std::vector<NodePool>& pools, const ClusterOptions& options,
                                 topology::LazyCatalogue& catalogue);

}  // namespace mortise::kube
