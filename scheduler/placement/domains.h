#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/topology_levels.h"

namespace mortise::placement {

using DomainId = Id<struct DomainTag>;  ///< a domain of Domains; 0 is the whole cluster

/// A node label: key and value.
using Label = std::pair<std::string, std::string>;

/// The topology above the nodes of a cluster: a tree of domains, of which every level but the last follows from a
/// label. A domain is known by its whole path, so equal values under different parents are different domains. A node
/// without the label of a level is a domain of its own there. Not synchronised.
class Domains {
 public:
  static constexpr int kCluster = -1;  ///< the level of the root

  /// One domain of a level of labels, or the cluster.
  struct Domain {
    int level = kCluster;
    DomainId parent;
    bool own = false;  ///< of a node that lacks the label; `name` is then the node's
    std::string name;
    std::map<std::pair<bool, std::string>, DomainId, std::less<>> children;  ///< by (own, name); none in the last level
    std::vector<NodeId> nodes;                                               ///< of the last level only; in no order
    std::int64_t node_count = 0;
    std::int64_t gpus = 0;       ///< without lost ones
    std::int64_t free_gpus = 0;  ///< devices nothing is on, less lost ones
  };

  /// The levels follow from the labels that the nodes carry (levels_carried), again whenever that changes.
  explicit Domains(const ClusterState& cluster) : cluster_(cluster) { clear_tree(); }
  /// These levels, which check_levels has passed, whatever labels there are.
  Domains(const ClusterState& cluster, std::vector<TopologyLevel> levels);

  /// A node of the cluster came, or its labels are others now. Nodes that nobody told of are in no domain.
  void set_node(NodeId node, std::span<const Label> labels);
  /// Before or after the cluster forgets the node.
  void remove_node(NodeId node);
  /// Catches up with the cluster and the labels; what follows is as of the last refresh. Ids of domains may change.
  void refresh();

  /// Coarse to fine, without the level of single nodes.
  std::span<const TopologyLevel> levels() const { return levels_; }
  /// The number of levels of labels is the level at which each node is a domain of its own.
  int node_level() const { return static_cast<int>(levels_.size()); }
  /// By name or key; "node" and kubernetes.io/hostname are the level of nodes.
  std::optional<int> find_level(std::string_view text) const;
  /// "cluster", the level's name, "node".
  std::string_view level_name(int level) const;

  std::size_t domain_slots() const { return domains_.size(); }
  const Domain& domain(DomainId id) const { return domains_[id.index()]; }
  static DomainId root() { return DomainId{0}; }
  /// The domains of a level of labels, or the root alone, in the order of their paths.
  std::span<const DomainId> at_level(int level) const { return by_level_[static_cast<std::size_t>(level + 1)]; }
  /// Of a node that is in a domain, at a level of labels or kCluster.
  DomainId domain_of(NodeId node, int level) const;
  bool knows(NodeId node) const { return node.index() < nodes_.size() && nodes_[node.index()].present; }
  /// The names on the way from the coarsest level, joined by '/'.
  std::string path(DomainId id) const;

  /// Counts everything again and compares, as of the last refresh.
  Status check() const;

 private:
  struct Node {
    bool present = false;
    std::map<std::string, std::string, std::less<>> labels;  // those that may matter
    DomainId leaf;
    std::int64_t gpus = 0;
    std::int64_t free_gpus = 0;
  };

  bool matters(std::string_view key) const;
  void forget_labels(const Node& node);
  void clear_tree();
  void rebuild();
  void plant(NodeId id);
  void uproot(NodeId id);
  DomainId child(DomainId parent, bool own, const std::string& name);
  void count(NodeId id, int sign);
  void recount(NodeId id);
  void list_levels();

  const ClusterState& cluster_;
  bool configured_ = false;
  std::vector<TopologyLevel> levels_;
  CarriedKeys carried_;
  bool relabelled_ = false;  // the keys carried changed
  bool regrown_ = true;      // domains came or went: by_level_ is out of date
  std::vector<Node> nodes_;  // by NodeId
  std::vector<Domain> domains_;
  std::vector<DomainId> unused_;
  std::vector<std::vector<DomainId>> by_level_;  // 0: the root
  std::uint64_t seen_ = 0;
};

}  // namespace mortise::placement
