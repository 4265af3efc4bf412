#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/node.h"
#include "scheduler/kube/objects/notes.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/topology/sources/lazy_catalogue.h"
#include "scheduler/topology/sources/nrt_json.h"

namespace mortise::kube {

/// Collects the nodes, pods and topology reports of one or more Kubernetes objects (Node, Pod, NodeResourceTopology and
/// their lists), in any order.
class ObjectList {
 public:
  explicit ObjectList(topology::LazyCatalogue& catalogue) : catalogue_(catalogue) {}

  /// `where` is the start of messages: file and, where known, line.
  Status add_document(const nlohmann::json& document, const std::string& where);

  /// Everything added so far as a cluster; terminal and pending pods are left out.
  Result<ClusterFile> finish(const std::string& file_name);

 private:
  Status add_list(const nlohmann::json& list, std::string_view item_kind, const std::string& where);
  Status add_object(const nlohmann::json& object, std::string_view default_kind, bool in_list,
                    const std::string& where);
  Status add_node(const nlohmann::json& object, const std::string& where);
  Status add_pod(const nlohmann::json& object, const std::string& where);
  Status add_report(const nlohmann::json& object, const std::string& where);
  Status find_topologies();
  void bind(const Pod& pod);

  topology::LazyCatalogue& catalogue_;
  ClusterFile cluster_;
  std::vector<std::pair<std::size_t, Node>> gpu_nodes_;                       ///< with their places in cluster_.nodes
  std::map<std::string, topology::NodeTopologyReport, std::less<>> reports_;  ///< by node
  std::map<std::string, std::size_t, std::less<>> node_index_;
  std::map<std::string, bool, std::less<>> pod_seen_;
  std::vector<Pod> pods_;
  Notes notes_;
};

}  // namespace mortise::kube
