#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/asked_pods.h"
#include "scheduler/extender/binder.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/extender/question.h"
#include "scheduler/extender/wire.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/preemption.h"

namespace mortise::extender {

/// What became of a pod that asked, for the metrics.
enum class Outcome {
  kPlaced,     ///< at least one node passed
  kRejected,   ///< no node passed
  kUnmanaged,  ///< asks for nothing we manage; every node passed
  kInvalid,    ///< the request cannot be met by any node
  kBound,      ///< holds its place already
};
inline constexpr int kOutcomeCount = 5;
std::string_view outcome_name(Outcome outcome);

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
  /// What pods that wait for a node ask for, where somebody else sees them; null: not known.
  using Waiting = std::function<const placement::PodRequest*(std::string_view uid)>;

  /// After what a place is chosen that is chosen now. Called for each decision, in their order.
  using Stamp = std::function<kube::DecisionStamp()>;

  /// All must outlive the handlers. With `reserve_for` above 0, a decisive answer holds its place for so long, so that
  /// pods asked about before it is bound do not get it.
  Handlers(placement::Engine& engine, Bookings& bookings, const Clock& clock, Nanoseconds reserve_for = 0,
           Waiting waiting = {}, Stamp stamp = {})
      : engine_(engine),
        bookings_(bookings),
        cluster_(bookings.cluster()),
        clock_(clock),
        reserve_for_(reserve_for),
        waiting_(std::move(waiting)),
        stamp_(std::move(stamp)) {}

  FilterAnswer filter(const PodQuestion& question);
  /// Does not count as an ask and changes nothing.
  std::vector<HostPriority> prioritize(const PodQuestion& question);
  /// On which nodes which pods should go. Changes nothing.
  std::vector<NodeVictims> preempt(const PreemptionQuestion& question);
  /// Takes the place in memory. Returns the error's text; empty: bound.
  std::string bind(const BindingArgs& args);

  /// The pod of this name that asked last and is not bound; null: none did lately.
  const AskedPod* find_asked(std::string_view ns, std::string_view name) {
    return asked_pods_.find_named(ns, name, clock_.now());
  }

  /// Places held by pods that were answered and are not being bound yet.
  std::size_t reservations() const { return bookings_.reserved(); }

  /// A bind in two halves, for a Binding that has to be sent between them.
  struct BindStart {
    std::string error;  ///< not empty: refused
    bool done = false;  ///< it is bound there already
    bool holds_place = false;
    placement::PodRequest request;
    placement::DeviceSet devices;
    kube::DecisionStamp decided;
  };
  BindStart start_bind(const BindingArgs& args);
  /// Bound: the place is the pod's. Not bound: it is given back. Unknown: it is kept for a while, until the pod is seen
  /// bound or asks again. A pod that was seen to end since start_bind keeps nothing.
  void finish_bind(const BindStart& start, const std::string& node, BindResult::State state);

 private:
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
  const Booking* find_bound(std::string_view uid) const;
  Choice choose(const placement::PodRequest& pod, AskedPod* memory, Answers answers, const placement::Placed& best,
                bool counts);
  placement::Placed best_not_aside(const placement::PodRequest& pod, const AskedPod& memory, Answers answers,
                                   const placement::Placed& best);
  void filter_managed(const PodQuestion& question, Asked& asked, FilterAnswer& answer);
  void reserve(const AskedPod& memory, const placement::Placed& placed);
  kube::DecisionStamp stamp() const { return stamp_ ? stamp_() : kube::DecisionStamp{}; }
  bool has_fitting_node(const PreemptionQuestion& question, ShapeId shape);
  NodeVictims victims_on(placement::ClusterState& cluster, ShapeId shape, const PodQuestion& pod,
                         const PreemptionCandidate& candidate, placement::EvictionBudget& budget);
  std::string take_place(const placement::PodRequest& pod, const AskedPod* memory, NodeId node);

  placement::Engine& engine_;
  Bookings& bookings_;
  const placement::ClusterState& cluster_;
  const Clock& clock_;
  Nanoseconds reserve_for_;
  Waiting waiting_;
  Stamp stamp_;
  AskedPods asked_pods_;
  std::vector<std::uint32_t> first_entry_;  // scratch of collect(): entry + 1 of a node, 0: not seen
};

}  // namespace mortise::extender
