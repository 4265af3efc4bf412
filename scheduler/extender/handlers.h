#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/extender/asked_pods.h"
#include "scheduler/extender/binder.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/extender/gang_record.h"
#include "scheduler/extender/group_trials.h"
#include "scheduler/extender/question.h"
#include "scheduler/extender/wire.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/preemption.h"

namespace mortise::extender {

/// What became of a pod that asked, for the metrics.
enum class Outcome {
  kPlaced,     ///< at least one node passed
  kRejected,   ///< no node passed
  kUnmanaged,  ///< asks for nothing we manage, or is another scheduler's; every node passed
  kInvalid,    ///< the request cannot be met by any node
  kBound,      ///< holds its place already
  kWaits,      ///< a member of a gang that has no place now
};
inline constexpr int kOutcomeCount = 6;
std::string_view outcome_name(Outcome outcome);

struct FilterAnswer {
  FilterResult result;
  Outcome outcome = Outcome::kPlaced;
  placement::Reason main_reason = placement::Reason::kNone;  ///< of a rejection
  bool refused = false;  ///< the pod came a third time with the same answer: its node was set aside
};

class Evictions;
class Gangs;
class GangFeed;

/// The verbs of the extender protocol, without sockets or JSON. Keeps what the protocol does not say: which pods
/// asked, what they were told and which are bound. Not synchronised.
class Handlers {
 public:
  /// Pods that wait for a node, where somebody else sees them; null: not known.
  using Waiting = std::function<const WaitingPod*(std::string_view uid)>;

  /// The number of the decision that is taken now, and what it can know of. Called once for each, in their order.
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

  /// Decides for pods with one of these schedulerNames only; none: for all. The others pass everywhere and are bound
  /// where kube-scheduler says.
  void decide_only_for(std::vector<std::string> schedulers) { schedulers_ = std::move(schedulers); }

  /// Members of gangs are placed by these. Both must outlive the handlers.
  void place_gangs(Gangs& gangs, GangFeed& feed) {
    gangs_ = &gangs;
    gang_feed_ = &feed;
  }

  /// Gangs that are on several nodes may be victims, too: what kube-scheduler does not evict of them is evicted by
  /// these. They must outlive the handlers.
  void evict_through(Evictions& evictions) { evictions_ = &evictions; }

  FilterAnswer filter(const PodQuestion& question);
  /// Does not count as an ask and changes nothing.
  std::vector<HostPriority> prioritize(const PodQuestion& question);
  /// On which nodes which pods should go. Changes nothing but what is decided of the asking pod's gang, and what is to
  /// be evicted once kube-scheduler has begun.
  std::vector<NodeVictims> preempt(const PreemptionQuestion& question);
  /// Takes the place in memory. Returns the error's text; empty: bound.
  std::string bind(const BindingArgs& args);

  /// The pod of this name that asked last and is not bound; null: none did lately.
  const AskedPod* find_asked(std::string_view ns, std::string_view name) {
    return asked_pods_.find_named(ns, name, clock_.now());
  }

  /// How many nodes say what of the pod, whose own reservation counts as free.
  std::array<std::int64_t, placement::kReasonCount> reasons(const AskedPod& pod) {
    return bookings_.without_reservation(pod.request.uid, [&] { return engine_.reasons(pod.request); });
  }

  /// Where nobody watches the cluster: gives back places that nobody came for. To be called often.
  void tick();

  /// Places held by pods that were answered and are not being bound yet.
  std::size_t reservations() const { return bookings_.reserved(); }
  const Observations& observations() const { return bookings_.observations(); }

  /// A bind in two halves, for a Binding that has to be sent between them.
  struct BindStart {
    std::string error;  ///< not empty: refused
    bool done = false;  ///< it is bound there already
    bool holds_place = false;
    placement::PodRequest request;
    placement::DeviceSet devices;
    kube::DecisionStamp decided;
    GangSlotNote slot;  ///< of a member of a gang
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

  /// FilterResult::reasons holds the texts of placement's reasons in their order, then these.
  static constexpr std::uint8_t kDecisive = placement::kReasonCount;
  static constexpr std::uint8_t kBoundElsewhere = kDecisive + 1;
  static constexpr std::uint8_t kKeptNode = kDecisive + 2;
  static constexpr std::uint8_t kInvalid = kDecisive + 3;
  static constexpr std::uint8_t kGangReason = kInvalid;  ///< of a pod one or the other is told

  bool is_ours(std::string_view scheduler) const;
  std::optional<NodeId> find_after(std::size_t& place, std::string_view name);
  Asked collect(const std::vector<AskedNode>& asked);
  AskedPod* remember(const PodQuestion& question);
  AskedPod* find_memory(std::string_view uid);
  const Booking* find_bound(std::string_view uid) const;
  Choice choose(const placement::PodRequest& pod, AskedPod* memory, Answers answers, const placement::Placed& best,
                bool counts);
  placement::Placed best_not_aside(const placement::PodRequest& pod, const AskedPod& memory, Answers answers,
                                   const placement::Placed& best);
  void filter_managed(const PodQuestion& question, Asked& asked, FilterAnswer& answer);
  bool filter_gang(const PodQuestion& question, Asked& asked, FilterAnswer& answer, std::string& reason);
  std::vector<std::uint32_t> take_out_kept(const PodQuestion& question, Asked& asked) const;
  void drop_expired();
  void reserve(const AskedPod& memory, const placement::Placed& placed);
  kube::DecisionStamp stamp() const { return stamp_ ? stamp_() : kube::DecisionStamp{}; }
  void pass_member(const PodQuestion& question, AskedPod& memory, bool one_node, const placement::Placed* best,
                   Answers answers);
  void assume_others(placement::ClusterState& cluster, const PodQuestion& question);

  /// Runs f(cluster) in a cluster in which the pod's own reservation is free, and what other members of its group were
  /// told in this trial is taken.
  template <class F>
  auto as_asked(const PodQuestion& question, F&& f) {
    return bookings_.without_reservation(question.pod.uid, [&] {
      return bookings_.try_out([&](placement::ClusterState& cluster) {
        if (!question.group.empty()) assume_others(cluster, question);
        return f(cluster);
      });
    });
  }
  bool is_gang_member(const PodQuestion& pod);
  std::vector<NodeVictims> preempt_for_gang(const PreemptionQuestion& question);
  void expect_evictions(const PodQuestion& pod, std::string_view node, const std::vector<std::string>& here,
                        const std::vector<std::string>& elsewhere);
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
  std::vector<std::string> schedulers_;  // empty: all
  AskedPods asked_pods_;
  GroupTrials trials_;
  Gangs* gangs_ = nullptr;
  GangFeed* gang_feed_ = nullptr;
  Evictions* evictions_ = nullptr;
  std::vector<std::uint32_t> first_entry_;  // scratch of collect(): entry + 1 of a node, 0: not seen
  std::vector<NodeId> followers_;  // at n + 1: the node that came after node n in a request; at 0: the first of one
};

}  // namespace mortise::extender
