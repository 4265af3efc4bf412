#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/machine.h"
#include "scheduler/topology/pair_matrix.h"

namespace mortise::topology {

/// What joins two GPUs.
struct PairLink {
  int nvlinks = 0;        ///< more than 0: this is the link, and `pcie` the way beside it
  bool switched = false;  ///< the NVLinks run through an NVSwitch, so the pairs of one GPU share them
  LinkClass pcie = LinkClass::kUnknown;
  /// `pcie`, or where it is hidden or not said the best that NICs, NUMA nodes and CPU lists tell. For ranking.
  LinkClass likely = LinkClass::kUnknown;
  friend bool operator==(const PairLink&, const PairLink&) = default;
};

/// As nvidia-smi spells it, "NV4" or "PIX"; empty when not known.
std::string to_text(const PairLink& link);

enum class VertexKind : std::uint8_t { kSocket, kNuma, kHostBridge, kSwitch, kGpu, kNic, kNvSwitch };
enum class EdgeKind : std::uint8_t { kSocketLink, kMemory, kPcie, kNvLink };

struct Vertex {
  VertexKind kind = VertexKind::kGpu;
  int id = 0;  ///< socket: its id; bridges: position in bridges(); the others: position in the machine's list
  friend bool operator==(const Vertex&, const Vertex&) = default;
};

struct Edge {
  int from = 0;  ///< positions in vertices(); for containment the outer one
  int to = 0;
  EdgeKind kind = EdgeKind::kPcie;
  int nvlinks = 0;
  std::optional<std::int64_t> mb_per_s;  ///< one direction, nominal; empty: not known
  friend bool operator==(const Edge&, const Edge&) = default;
};

/// The inside of a node as an immutable graph. GPUs, NICs and NUMA nodes are addressed by position in machine().
class NodeGraph {
 public:
  /// Refuses a machine whose parts do not fit together, or with more NVLinks than its GPU model has.
  static Result<std::shared_ptr<const NodeGraph>> build(Machine machine);

  const Machine& machine() const { return machine_; }
  int gpu_count() const { return static_cast<int>(machine_.gpus.size()); }
  const Gpu& gpu(int at) const { return machine_.gpus[static_cast<std::size_t>(at)]; }
  const Nic& nic(int at) const { return machine_.nics[static_cast<std::size_t>(at)]; }

  const PairLink& link(int a, int b) const;
  /// Bandwidth of the direct link in one direction; empty when the model or the class is not known.
  std::optional<std::int64_t> mb_per_s(int a, int b) const;
  /// The way between a GPU and a NIC.
  LinkClass nic_link(int gpu, int nic) const;
  /// The NICs with the nearest known class, ascending; none when no class is known.
  const std::vector<int>& nearest_nics(int gpu) const { return nearest_nics_[static_cast<std::size_t>(gpu)]; }

  /// GPUs joined by NVLinks, also over others: sets of two or more, each ascending, ordered by their first.
  const std::vector<std::vector<int>>& nvlink_domains() const { return domains_; }
  /// The best bandwidth of a way over NVLinks alone, also over other GPUs: that of its weakest link. 0 between
  /// different domains. Unknown models count as the assumed one.
  std::int64_t nvlink_path_mb_per_s(int a, int b) const { return paths_.at(a, b); }

  /// Bandwidth of every pair. What is not known counts as the assumed model, or as the farthest class: it ranks.
  const PairMatrix& bandwidth() const { return bandwidth_; }
  /// go-gpuallocator's score of every pair: 10 to 60 for the PCIe class plus 100 per NVLink. It matches NVLinks by the
  /// PCI address of the peer, so links into an NVSwitch do not count.
  const PairMatrix& plugin_scores() const { return scores_; }

  /// The PCIe tree: the machine's, or where it has none, the host bridges and switches that classes of PHB and nearer
  /// give away.
  std::span<const Bridge> bridges() const { return bridges_; }
  std::optional<int> gpu_bridge(int gpu) const { return gpu_bridge_[static_cast<std::size_t>(gpu)]; }
  std::optional<int> nic_bridge(int nic) const { return nic_bridge_[static_cast<std::size_t>(nic)]; }

  std::span<const Vertex> vertices() const { return vertices_; }
  std::span<const Edge> edges() const { return edges_; }

  /// Recomputes everything derived by other means and compares.
  Status check() const;

 private:
  NodeGraph() = default;
  void link_nics();
  void link_pairs();
  void find_bridges();
  void fill_matrices();
  void list_vertices();
  void list_containment();
  void list_nvlinks();
  void find_paths();
  LinkClass likely_class(int a, int b) const;
  Status check_models() const;
  Status check_links() const;
  Status check_paths() const;
  Status check_shape() const;

  Machine machine_;
  std::vector<PairLink> links_;       // gpus x gpus
  std::vector<LinkClass> nic_links_;  // gpus x nics
  std::vector<std::vector<int>> nearest_nics_;
  std::vector<std::vector<int>> domains_;
  PairMatrix bandwidth_;
  PairMatrix scores_;
  PairMatrix paths_;
  std::vector<Bridge> bridges_;
  std::vector<std::optional<int>> gpu_bridge_;
  std::vector<std::optional<int>> nic_bridge_;
  std::vector<Vertex> vertices_;
  std::vector<Edge> edges_;
};

/// One graph per distinct machine, shared by the nodes that are such a machine. UUIDs and PCI addresses do not make a
/// machine distinct: the graphs carry none.
class GraphTable {
 public:
  Result<std::shared_ptr<const NodeGraph>> intern(const Machine& machine);
  std::size_t size() const { return graphs_.size(); }

 private:
  std::map<Machine, std::shared_ptr<const NodeGraph>> graphs_;
};

}  // namespace mortise::topology
