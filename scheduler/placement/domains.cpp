#include "scheduler/placement/domains.h"

#include <algorithm>

namespace mortise::placement {

Domains::Domains(const ClusterState& cluster, std::vector<TopologyLevel> levels)
    : cluster_(cluster), configured_(true), levels_(std::move(levels)) {
  // Nodes are told apart by their names, which need not be what this label says.
  if (!levels_.empty() && levels_.back().key == kHostnameLabel) levels_.pop_back();
  clear_tree();
}

bool Domains::matters(std::string_view key) const {
  const auto has = [key](const auto& levels) {
    return std::any_of(levels.begin(), levels.end(), [key](const TopologyLevel& level) { return level.key == key; });
  };
  if (configured_) return has(levels_);
  const auto known = known_hierarchies();
  return std::any_of(known.begin(), known.end(), [&](const LevelHierarchy& row) { return has(row.levels); });
}

void Domains::set_node(NodeId id, std::span<const Label> labels) {
  if (id.index() >= nodes_.size()) nodes_.resize(id.index() + 1);
  Node& node = nodes_[id.index()];
  std::map<std::string, std::string, std::less<>> kept;
  for (const auto& [key, value] : labels) {
    if (matters(key) && !value.empty()) kept.insert_or_assign(key, value);
  }
  if (node.present && node.labels == kept) {
    recount(id);
    return;
  }
  if (node.present) remove_node(id);
  node.present = true;
  node.labels = std::move(kept);
  for (const auto& [key, value] : node.labels) ++carried_[key];
  relabelled_ = true;
  plant(id);
}

void Domains::remove_node(NodeId id) {
  if (!knows(id)) return;
  Node& node = nodes_[id.index()];
  uproot(id);
  forget_labels(node);
  node = {};
}

void Domains::forget_labels(const Node& node) {
  for (const auto& [key, value] : node.labels) {
    const auto found = carried_.find(key);
    if (--found->second == 0) carried_.erase(found);
  }
  relabelled_ = true;
}

void Domains::refresh() {
  if (relabelled_ && !configured_) {
    std::vector<TopologyLevel> now = levels_carried(carried_);
    if (now != levels_) {
      levels_ = std::move(now);
      rebuild();
    }
  }
  relabelled_ = false;
  const StateTable& states = cluster_.states();
  const StateTable::Moves moves = states.moves_since(seen_);
  if (moves.complete) {
    for (const NodeId node : moves.nodes) {
      if (knows(node)) recount(node);
    }
  } else {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].present) recount(NodeId{n});
    }
  }
  seen_ = states.moves_end();
  if (regrown_) list_levels();
  regrown_ = false;
}

void Domains::clear_tree() {
  domains_.assign(1, Domain{});
  unused_.clear();
  regrown_ = true;
}

void Domains::rebuild() {
  clear_tree();
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].present) plant(NodeId{n});
  }
}

DomainId Domains::child(DomainId parent, bool own, const std::string& name) {
  auto& children = domains_[parent.index()].children;
  const auto found = children.find(std::pair(own, name));
  if (found != children.end()) return found->second;
  DomainId id{static_cast<std::uint32_t>(domains_.size())};
  if (unused_.empty()) {
    children.emplace(std::pair(own, name), id);
    domains_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
    children.emplace(std::pair(own, name), id);
  }
  Domain& made = domains_[id.index()];
  made = {};
  made.level = domains_[parent.index()].level + 1;
  made.parent = parent;
  made.own = own;
  made.name = name;
  regrown_ = true;
  return id;
}

void Domains::plant(NodeId id) {
  Node& node = nodes_[id.index()];
  DomainId at = root();
  for (const TopologyLevel& level : levels_) {
    const auto label = node.labels.find(level.key);
    const bool own = label == node.labels.end();
    at = child(at, own, own ? cluster_.node_name(id) : label->second);
  }
  node.leaf = at;
  domains_[at.index()].nodes.push_back(id);
  const Machine& machine = cluster_.machine_of(id);
  node.gpus = machine.gpus - machine.gpus_lost;
  node.free_gpus = std::max(0, cluster_.state_of(id).whole_free() - machine.gpus_lost);
  count(id, +1);
}

void Domains::uproot(NodeId id) {
  count(id, -1);
  DomainId at = nodes_[id.index()].leaf;
  std::erase(domains_[at.index()].nodes, id);
  while (at != root() && domains_[at.index()].node_count == 0) {
    Domain& empty = domains_[at.index()];
    const DomainId parent = empty.parent;
    domains_[parent.index()].children.erase(std::pair(empty.own, empty.name));
    empty = {};
    unused_.push_back(at);
    at = parent;
    regrown_ = true;
  }
}

void Domains::count(NodeId id, int sign) {
  const Node& node = nodes_[id.index()];
  for (DomainId at = node.leaf;; at = domains_[at.index()].parent) {
    Domain& domain = domains_[at.index()];
    domain.node_count += sign;
    domain.gpus += sign * node.gpus;
    domain.free_gpus += sign * node.free_gpus;
    if (at == root()) return;
  }
}

void Domains::recount(NodeId id) {
  const Machine& machine = cluster_.machine_of(id);
  const std::int64_t gpus = machine.gpus - machine.gpus_lost;
  const std::int64_t free_gpus = std::max(0, cluster_.state_of(id).whole_free() - machine.gpus_lost);
  Node& node = nodes_[id.index()];
  if (node.gpus == gpus && node.free_gpus == free_gpus) return;
  count(id, -1);
  node.gpus = gpus;
  node.free_gpus = free_gpus;
  count(id, +1);
}

void Domains::list_levels() {
  by_level_.assign(levels_.size() + 1, {});
  by_level_[0].push_back(root());
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    for (const DomainId above : by_level_[l]) {
      for (const auto& [name, id] : domain(above).children) by_level_[l + 1].push_back(id);
    }
  }
}

std::optional<int> Domains::find_level(std::string_view text) const {
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    if (levels_[l].name == text || levels_[l].key == text) return static_cast<int>(l);
  }
  if (text == kNodeLevelName || text == kHostnameLabel) return node_level();
  return std::nullopt;
}

std::string_view Domains::level_name(int level) const {
  if (level == kCluster) return "cluster";
  return level == node_level() ? kNodeLevelName : levels_[static_cast<std::size_t>(level)].name;
}

DomainId Domains::domain_of(NodeId node, int level) const {
  DomainId at = nodes_[node.index()].leaf;
  while (domain(at).level > level) at = domain(at).parent;
  return at;
}

std::string Domains::path(DomainId id) const {
  if (id == root()) return "cluster";
  const Domain& here = domain(id);
  return here.parent == root() ? here.name : path(here.parent) + "/" + here.name;
}

Status Domains::check() const {
  std::vector<Domain> expected(domains_.size());
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].present) continue;
    const NodeId id{n};
    const Machine& machine = cluster_.machine_of(id);
    DomainId at = nodes_[n].leaf;
    if (domain(at).level + 1 != node_level()) return Error{"a node is not in a domain of the last level"};
    for (;; at = domain(at).parent) {
      Domain& mine = expected[at.index()];
      mine.node_count += 1;
      mine.gpus += machine.gpus - machine.gpus_lost;
      mine.free_gpus += std::max(0, cluster_.state_of(id).whole_free() - machine.gpus_lost);
      if (at == root()) break;
      const auto label = nodes_[n].labels.find(levels_[static_cast<std::size_t>(domain(at).level)].key);
      const bool own = label == nodes_[n].labels.end();
      if (domain(at).own != own || domain(at).name != (own ? cluster_.node_name(id) : label->second)) {
        return Error{"a node is in a domain that its labels do not name"};
      }
    }
  }
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    const Domain& is = domains_[d];
    const Domain& should = expected[d];
    if (is.node_count != should.node_count || is.gpus != should.gpus || is.free_gpus != should.free_gpus) {
      return Error{"the sums of domain '" + is.name + "' are not those of its nodes"};
    }
  }
  return ok_status();
}

}  // namespace mortise::placement
