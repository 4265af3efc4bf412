#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/result.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/node_insides.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/request.h"
#include "scheduler/placement/shape_table.h"
#include "scheduler/placement/state_table.h"

namespace mortise::placement {

/// One pod's hold on one node.
struct Allocation {
  NodeId node;
  ShapeId shape;
  DeviceSet devices;
  HoldsId holds{};                          ///< what it may hold of the node's inside
  Knowledge knowledge = Knowledge::kExact;  ///< of the devices
  bool counted = false;                     ///< it is one of those in its node's count
};

struct ClusterTotals {
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;  ///< without lost ones
  std::int64_t pods = 0;  ///< allocations held
  MilliGpu gpu_capacity = 0;
  MilliGpu gpu_used = 0;
  MilliCpu cpu_capacity = 0;
  MilliCpu cpu_used = 0;
  std::int64_t whole_free_gpus = 0;  ///< devices nothing is on, less those lost on their node

  friend bool operator==(const ClusterTotals&, const ClusterTotals&) = default;
};

/// Owner of every allocation. Changed only through the nodes' and pods' verbs below. Not synchronised.
class ClusterState {
 public:
  ClusterState() = default;
  ClusterState(const ClusterState&) = delete;
  ClusterState& operator=(const ClusterState&) = delete;

  /// Refuses a name already present, a negative amount, more devices than kMaxDevices, and a topology with another
  /// number of GPUs.
  /// `rank` is the place in the tie order: among equal candidates the lowest (rank, NodeId) wins.
  Result<NodeId> add_node(const NodeSpec& spec, std::uint64_t rank);

  /// The node is another one now; its pods stay. Devices that pods hold stay, too, even where the node says it has
  /// fewer; then its topology is not used. What was foreseen of pods is forgotten when the topology changes.
  /// Not while a mark is open.
  Status update_node(NodeId id, const NodeSpec& spec);
  /// Refused while pods are on the node. The id may be given to another node.
  Status remove_node(NodeId id);

  /// Nodes may get a topology while pods are on them.
  void expect_topologies() { insides_.expect_topologies(); }

  /// Interns what the pod asks for. Does not change any allocation.
  ShapeId intern(const PodRequest& pod);
  ModelId intern_model(std::string_view name);

  /// Takes the devices; an error ("stale: ...") changes nothing. `devices` must be as `Placed` gives them:
  /// as many as the shape's gpus, each with the shape's share free. `knowledge` says how sure they are.
  Result<AllocationId> apply(ShapeId shape, NodeId node, const DeviceSet& devices,
                             Knowledge knowledge = Knowledge::kExact);
  /// Books a pod that is on the node already, whether it fits or not: free CPU, memory and pods may fall below zero,
  /// and `devices` may be fewer than it asks for; each must have its share free.
  Result<AllocationId> adopt(ShapeId shape, NodeId node, const DeviceSet& devices, Knowledge knowledge);
  Status release(AllocationId id);

  /// The pod is seen with these devices. Where they are on record for another pod, that one gets others on record. An
  /// error, which changes nothing: it does not hold so many, or on its node nothing is foreseen. Not while a mark is
  /// open.
  Result<Observed> observe_devices(AllocationId id, const DeviceSet& devices);
  /// So many GPUs of each NUMA node, by its id, are seen to be held by these pods of the node together. The same
  /// errors. Not while a mark is open.
  Result<Observed> observe_count(NodeId node, const std::map<int, int>& gpus_held, std::span<const AllocationId> pods);

  /// What happened since `mark()` is taken back by `undo(mark)`, newest first. Marks nest.
  struct Mark {
    std::size_t depth = 0;
  };
  Mark mark();
  void undo(Mark mark);
  /// Keeps what happened since the mark.
  void keep(Mark mark);

  /// Recomputes everything from the allocations and compares; the error names the first difference.
  Status check() const;

  /// Why a node in this state that has enough of everything does not take the pod: the topology; kNone: it does.
  Reason topology_reason(const NodeState& state, const PodShape& pod) const {
    return insides_.reason(machine(state.machine), state, pod);
  }
  /// The devices that a pod of whole GPUs gets on a node that takes it (see NodeInsides::choose).
  DeviceSet choose_devices(const NodeState& state, const PodShape& pod,
                           std::optional<topology::Objective> objective) const {
    return insides_.choose(machine(state.machine), state, pod, objective);
  }
  /// Null: not known.
  const NodeTopology* topology_of(const Machine& machine) const { return insides_.topology(machine.topology); }
  /// What the node's pods may hold of its inside; null: the devices on record, no more.
  const Belief* belief_of(NodeId id) const { return insides_.belief(state_of(id).belief); }

  std::optional<NodeId> find_node(std::string_view name) const;
  /// Node ids are below this; the ids of removed nodes are not in use.
  std::size_t node_count() const { return nodes_.size(); }
  const std::string& node_name(NodeId id) const { return nodes_[id.index()].name; }
  /// Whether find_node(name) would find this one; quicker than that.
  bool is_node(NodeId id, std::string_view name) const {
    if (id.index() >= nodes_.size()) return false;
    const NodeEntry& node = nodes_[id.index()];
    return node.present && node.name == name;
  }
  std::uint64_t node_rank(NodeId id) const { return states_.rank(id); }
  StateId node_state(NodeId id) const { return states_.state_of(id); }
  const NodeState& state(StateId id) const { return states_.state(id); }
  const NodeState& state_of(NodeId id) const { return states_.state(node_state(id)); }
  const Machine& machine(MachineId id) const { return machines_[id.index()]; }
  const Machine& machine_of(NodeId id) const { return machine(state_of(id).machine); }
  const std::string& model_name(ModelId id) const { return models_[id.index()]; }
  const Allocation* allocation(AllocationId id) const;
  const ClusterTotals& totals() const { return totals_; }
  const StateTable& states() const { return states_; }
  const ShapeTable& shapes() const { return shapes_; }
  /// Grows by one with every mutation.
  std::uint64_t version() const { return version_; }

 private:
  friend class NodeTrial;  // keeps the same books for one node

  static constexpr std::size_t kKinds = 32;
  struct NodeEntry {
    std::string name;
    std::array<std::uint16_t, kKinds> pods_of_kind{};  // GPU pods on the node, by bit of GpuPodKinds
    std::vector<AllocationId> pods{};                  // of a node whose topology is known; in no order
    NodeInsides::Count count{};                        // what some of them were seen to hold
    bool present = true;
  };
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  enum class Change { kApply, kRelease };
  struct JournalEntry {
    Change change;
    AllocationId id;
    Allocation allocation;
    bool grew = false;  // an apply that took a new id rather than a free one
  };

  MachineId intern_machine(const Machine& machine);
  Status check_spec(const NodeSpec& spec) const;
  Machine machine_from(const NodeSpec& spec);
  NodeState empty_state(MachineId machine) const;
  void count_node(const Machine& machine, int sign);
  static int usable_free(const Machine& machine, const NodeState& state);
  bool devices_free(const PodShape& shape, const NodeState& state, const DeviceSet& devices) const;
  AllocationId take(const Allocation& allocation);
  Status fits(const PodShape& shape, const NodeState& state, const DeviceSet& devices) const;
  static void charge(const PodShape& shape, const DeviceSet& devices, int sign, NodeState& state);
  /// Books the allocation on its node: sign -1 takes, +1 gives back.
  void book(AllocationId id, const Allocation& allocation, int sign);
  NodeInsides::HeldHere held_here(const Allocation& allocation) const;
  std::vector<NodeInsides::HeldHere> held_on(const NodeEntry& node) const;
  static void list(NodeEntry& node, AllocationId id, const NodeInsides::HeldHere& held, int sign);
  void drop_stale_count(NodeEntry& node);
  Status foreseen_on(NodeId node) const;
  Observed settle_observed(NodeId id, bool mismatch, std::optional<AllocationId> seen, GpuMask before);
  void move_records(NodeId id, AllocationId seen, GpuMask before);
  void restate(NodeId node);
  void count_kind(NodeEntry& node, const PodShape& shape, int sign, NodeState& state);
  void after_mutation();

  std::vector<NodeEntry> nodes_;
  std::unordered_map<std::string, NodeId, NameHash, std::equal_to<>> by_name_;
  std::vector<Machine> machines_;
  std::map<Machine, MachineId> machine_ids_;
  std::vector<std::string> models_;
  StateTable states_;
  ShapeTable shapes_;
  mutable NodeInsides insides_;  // remembers what it was asked
  std::vector<std::optional<Allocation>> allocations_;
  std::vector<AllocationId> free_ids_;
  std::vector<NodeId> free_nodes_;
  std::vector<JournalEntry> journal_;  // kept only while a mark is open
  std::size_t open_marks_ = 0;
  ClusterTotals totals_;
  std::uint64_t version_ = 0;
};

}  // namespace mortise::placement
