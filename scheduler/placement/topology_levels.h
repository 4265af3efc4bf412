#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::placement {

/// One level of the topology above the node: nodes with the same value of the label are in one domain of it.
struct TopologyLevel {
  std::string name;  ///< as people write it, "rack"
  std::string key;   ///< of the node label

  friend bool operator==(const TopologyLevel&, const TopologyLevel&) = default;
};

/// Below all levels of labels: each node is a domain of its own.
inline constexpr std::string_view kNodeLevelName = "node";
/// The label that says the same as the node's name, mostly. Nodes are told apart by their names.
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";
inline constexpr std::size_t kMaxLevels = 16;

/// What a known hierarchy describes. A cluster's levels are one hierarchy of each kind, in this order.
enum class HierarchyKind {
  kPlace,        ///< where it is
  kNetwork,      ///< the switches above a node
  kAccelerator,  ///< GPUs of several nodes on one NVLink fabric
};

/// Labels that a provider or tool puts on nodes, coarse to fine.
struct LevelHierarchy {
  std::string_view origin;
  HierarchyKind kind;
  std::vector<TopologyLevel> levels;
};

std::span<const LevelHierarchy> known_hierarchies();

/// How many nodes carry a label, by its key.
using CarriedKeys = std::map<std::string, std::size_t, std::less<>>;

/// The levels, coarse to fine, that follow from the labels that nodes carry: of each kind the hierarchy of which some
/// key is on the most nodes (the first in the table among equals), without the keys that no node has.
std::vector<TopologyLevel> levels_carried(const CarriedKeys& carried);

/// Configured levels, coarse to fine: names and keys are there and differ, there are at most kMaxLevels, none but the
/// last is kubernetes.io/hostname, and none but that one is called "node".
Status check_levels(std::span<const TopologyLevel> levels);

/// The levels of an option `--levels NAME=LABEL,...`, coarse to fine, checked; none for an empty text. An error names
/// the option.
Result<std::vector<TopologyLevel>> parse_levels(std::string_view text);

}  // namespace mortise::placement
