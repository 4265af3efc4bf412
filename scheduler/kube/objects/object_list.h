#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/notes.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

/// Collects the nodes and pods of one or more Kubernetes objects (Node, Pod, List, NodeList, PodList).
class ObjectList {
 public:
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
  void bind(const Pod& pod);

  ClusterFile cluster_;
  std::map<std::string, std::size_t, std::less<>> node_index_;
  std::map<std::string, bool, std::less<>> pod_seen_;
  std::vector<Pod> pods_;
  Notes notes_;
};

}  // namespace mortise::kube
