#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/rng.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "tests/property/scenario.h"
#include "tests/support/reference_engine.h"

namespace mortise::property {

/// Ends the property with this text.
[[noreturn]] void fail(const std::string& what);
std::string to_text(const placement::Decision& decision);
std::string to_text(const std::vector<int>& devices);
std::vector<int> to_list(const placement::DeviceSet& devices);

/// A pod both sides hold.
struct Held {
  AllocationId id;
  std::uint64_t ticket = 0;  ///< the reference's name of it
  std::size_t node = 0;
};

/// The product's cluster and engine beside the reference's, fed with the same events. For use inside a property: each
/// member fails it at the first difference.
class Twin {
 public:
  /// `policy` must be one the reference knows. The engine starts on the first `nodes` nodes of the scenario.
  Twin(const Scenario& scenario, std::string_view policy, std::size_t nodes);
  Twin(const Scenario& scenario, std::string_view policy) : Twin(scenario, policy, scenario.nodes.size()) {}

  void add_node(const RankedNode& node);

  /// Places the pods of an arrival one by one, or releases one of the pods held.
  void run(const Event& event);
  /// What both sides say about the pod, asked in several ways; nothing changes.
  placement::Decision plan(const placement::PodRequest& pod);
  /// Commits a plan on both sides; the product must refuse it just where the reference finds no room.
  std::optional<Held> commit(const placement::PodRequest& pod, const placement::Placed& placed);
  void release(std::size_t which);

  /// Compares every pod, amount and total, and has the cluster check itself.
  void compare_state() const;
  /// Compares F of each node and of the cluster.
  void compare_fragmentation();

  placement::ClusterState& cluster() { return cluster_; }
  std::vector<reference::Node>& nodes() { return nodes_; }
  std::vector<Held>& held() { return held_; }
  /// A name no other pod has.
  std::string next_name() { return "pod-" + std::to_string(names_++); }

 private:
  std::vector<NodeId> any_order();
  void compare_candidates(const placement::PodRequest& pod, const placement::Decision& decision);
  void compare_answers(const placement::PodRequest& pod, const std::vector<reference::Verdict>& verdicts,
                       const std::vector<placement::NodeAnswer>& answers) const;
  void compare_reasons(const placement::PodRequest& pod, const std::vector<reference::Verdict>& verdicts,
                       const placement::Decision& decision);

  placement::ClusterState cluster_;
  std::unique_ptr<placement::TypicalPods> typical_;
  std::unique_ptr<placement::Engine> engine_;
  std::unique_ptr<placement::FragmentationModel> model_;
  std::unique_ptr<placement::FragmentationMeter> meter_;
  reference::Engine reference_;
  std::vector<reference::Node> nodes_;
  std::vector<NodeId> ids_;
  std::vector<Held> held_;
  Rng orders_;
  std::uint64_t names_ = 0;
  std::uint64_t tickets_ = 0;
};

}  // namespace mortise::property
