#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/asked_pods.h"
#include "scheduler/extender/question.h"
#include "scheduler/extender/wire.h"
#include "scheduler/placement/engine.h"

namespace mortise::extender {

/// What became of a pod that asked, for the metrics.
enum class Outcome {
  kPlaced,     ///< at least one node passed
  kRejected,   ///< no node passed
  kUnmanaged,  ///< asks for nothing we manage; every node passed
  kInvalid,    ///< the request cannot be met by any node
  kBound,      ///< holds its place already
};

struct FilterAnswer {
  FilterResult result;
  Outcome outcome = Outcome::kPlaced;
  placement::Reason main_reason = placement::Reason::kNone;  ///< of a rejection
  bool refused = false;  ///< the pod came a third time with the same answer: its node was set aside
};

/// The verbs of the extender protocol, without sockets or JSON. Keeps what the protocol does not say: which pods
/// asked, what they were told and which are bound. Not synchronised.
class Handlers {
 public:
  /// All three must outlive the handlers.
  Handlers(placement::Engine& engine, const placement::ClusterState& cluster, const Clock& clock)
      : engine_(engine), cluster_(cluster), clock_(clock) {}

  /// A pod that holds its place in the cluster already.
  void adopt(const placement::PodRequest& pod, std::string_view node);

  FilterAnswer filter(const PodQuestion& question);
  /// Does not count as an ask and changes nothing.
  std::vector<HostPriority> prioritize(const PodQuestion& question);
  /// Takes the place in memory. Returns the error's text; empty: bound.
  std::string bind(const BindingArgs& args);

  /// The pod of this name that asked last and is not bound; null: none did lately.
  const AskedPod* find_asked(std::string_view ns, std::string_view name) {
    return asked_pods_.find_named(ns, name, clock_.now());
  }

 private:
  struct BoundPod {
    std::string ns;
    std::string name;
    std::string node;
  };
  /// The distinct nodes of a request; `known[i]` is the entry `at[i]` of `nodes`.
  struct Asked {
    std::vector<NodeVerdict> nodes;
    std::vector<NodeId> known;
    std::vector<std::uint32_t> at;
    std::size_t named = 0;  ///< entries whose name is not empty
  };
  struct Choice {
    placement::Placed placed;
    bool refused = false;
  };
  using Answers = std::span<const placement::NodeAnswer>;

  Asked collect(const std::vector<AskedNode>& asked);
  AskedPod* remember(const placement::PodRequest& pod);
  const BoundPod* find_bound(std::string_view uid) const;
  Choice choose(const placement::PodRequest& pod, AskedPod* memory, Answers answers, const placement::Placed& best,
                bool counts);
  placement::Placed best_not_aside(const placement::PodRequest& pod, const AskedPod& memory, Answers answers,
                                   const placement::Placed& best);
  void filter_managed(const PodQuestion& question, Asked& asked, FilterAnswer& answer);
  std::string take_place(const placement::PodRequest& pod, const std::optional<placement::Placed>& plan, NodeId node);

  placement::Engine& engine_;
  const placement::ClusterState& cluster_;
  const Clock& clock_;
  AskedPods asked_pods_;
  std::map<std::string, BoundPod, std::less<>> bound_;  // by UID
  std::vector<std::uint32_t> first_entry_;              // scratch of collect(): entry + 1 of a node, 0: not seen
};

}  // namespace mortise::extender
