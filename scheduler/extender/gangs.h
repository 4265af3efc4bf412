#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/base/clock.h"
#include "scheduler/base/result.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/extender/gang_record.h"
#include "scheduler/extender/gang_slot.h"
#include "scheduler/placement/domains.h"
#include "scheduler/placement/gang_planner.h"

namespace mortise::extender {

class Evictions;
class VictimPoolBuilder;

struct GangTimes {
  Nanoseconds reserve_for =
      60 * kSecond;                       ///< places that nobody is bound to; begins anew with each member's first bind
  Nanoseconds fresh_for = 30 * kSecond;   ///< what kube-scheduler said of nodes counts for so long
  Nanoseconds aside_for = 60 * kSecond;   ///< a node that did not work out
  Nanoseconds age = 120 * kSecond;        ///< a gang that does not fit for so long has nodes kept for it
  Nanoseconds keep_for = 1800 * kSecond;  ///< and for so long; then it is the turn of another
  Nanoseconds kick_gap = 1 * kSecond;     ///< between two times that members of one gang are woken
  Nanoseconds preempt_for = 60 * kSecond;  ///< nodes are held for a gang for which pods are evicted
};

/// Gangs from their first member to their last: who is there, who has a place, what they wait for. All members that
/// must start together get their places at once or none does, and none is bound before. Which pod holds what is in the
/// bookings; here is only what they do not know. No I/O; not synchronised.
class Gangs final : private BookingsListener {
 public:
  /// All must outlive it; the domains know the nodes.
  Gangs(Bookings& bookings, placement::ClusterState& cluster, placement::Domains& domains,
        const placement::Policy& policy, std::uint64_t seed, const Clock& clock, const GangTimes& times = {})
      : bookings_(bookings),
        cluster_(cluster),
        domains_(domains),
        planner_(cluster, domains, policy, seed),
        clock_(clock),
        times_(times) {
    bookings_.tell(*this);
  }
  ~Gangs() override { bookings_.stop_telling(*this); }
  Gangs(const Gangs&) = delete;
  Gangs& operator=(const Gangs&) = delete;

  /// Gangs that are on several nodes may be victims, too: what kube-scheduler does not evict of them is evicted by
  /// these. They must outlive it.
  void evict_through(Evictions& evictions) { evictions_ = &evictions; }

  /// The pod is a member of this gang, waiting or bound, and the gang is like this now. What was reserved for it as one
  /// of another gang, or before it asked for something else, is given back.
  void see(const GangSpec& spec, const GangPod& pod);
  /// The member has done its work.
  void succeeded(std::string_view uid);
  /// The member is gone, or has failed. Before the bookings forget it.
  void gone(std::string_view uid);
  /// All of the gang's members say this of it now. Places that are only reserved are given back when they do not do for
  /// what it says.
  void respecify(const GangSpec& spec);
  void node_left(NodeId node);
  /// Something became free.
  void freed() {
    waking_ = true;
    ++freed_;
    ++epoch_;
  }
  /// Nodes came or are others now.
  void nodes_changed() {
    nodes_changed_ = true;
    freed();
  }

  bool is_member(std::string_view uid) const { return gang_of_.find(uid) != gang_of_.end(); }
  /// Reserved, being bound or bound.
  bool has_place(std::string_view uid) const { return bookings_.find(uid) != nullptr; }
  /// The pod is known to hold nothing any more.
  void free_place(std::string_view uid) { bookings_.ended(uid); }
  /// kube-scheduler asks where the member, which is not bound, may go of these nodes.
  GangAnswer ask(std::string_view uid, std::span<const NodeId> nodes);
  /// kube-scheduler asks who is to go so that the member, which is not bound, gets a place; there it could make room.
  /// Nothing: nobody, on any node.
  std::optional<GangVictims> preempt(std::string_view uid, std::span<const RoomToMake> rooms);
  /// The node that the member has a place on; empty: none.
  std::optional<NodeId> place_of(std::string_view uid) const;
  /// Why the member must not be bound to the node now; empty: it may be, and will.
  std::string start_bind(std::string_view uid, std::string_view node);
  /// From now on Bindings carry the plan of their gang, for restore().
  void keep_plans() { keeps_plans_ = true; }
  /// What the member's Binding is to say of its gang's plan. After start_bind, while its place is still reserved.
  GangSlotNote slot_of(std::string_view uid);
  /// The member is bound by a Binding that told of this plan: earlier ones are of no use any more.
  void bound_with(std::string_view uid, const std::string& plan);
  /// The next ConfigMap that holds a plan of no use; empty: there is none.
  std::optional<PlanMapName> next_discarded();

  /// The ConfigMaps that restore() needs to know.
  std::set<PlanMapName> maps_claimed(const std::vector<SlotClaim>& claims) const;
  /// What they hold, or why that is not known.
  using PlanTexts = std::map<PlanMapName, Result<std::string>>;
  /// At the start, when all that is bound is known: members that wait get the places back that their gang's plan has
  /// for them, where these are free. Bound members are believed what they say if it agrees with the plan that they name
  /// and with where they are; returns who is not.
  std::vector<RefusedSlot> restore(const std::vector<SlotClaim>& claims, const PlanTexts& maps);

  /// The node is kept for a gang that this pod must not get in the way of.
  bool kept_from(NodeId node, std::string_view uid, std::int32_t priority) const;

  /// Gives back what nobody came for.
  void expire();
  /// The same, and looks who is to be woken. To be called often.
  void tick();
  /// The next to be woken; empty: nobody is.
  std::optional<GangKick> next_kick();

  const std::map<std::string, GangRecord, std::less<>>& gangs() const { return gangs_; }
  const GangFigures& figures() const { return figures_; }
  GangPhase phase(const GangRecord& gang) const;
  /// Of its group, else the lowest of its members.
  std::int32_t priority(const GangRecord& gang) const;
  /// The lowest of its members and its group: what it may take nobody's place with who has as much.
  std::int32_t priority_as_preemptor(const GangRecord& gang) const;
  /// The highest of its members and its group.
  std::int32_t priority_as_victim(const GangRecord& gang) const;
  /// The gang of the pod; null: it is of none.
  const GangRecord* gang_of(std::string_view uid) const;
  /// Why the gang cannot be placed whatever happens; empty: it can.
  std::string problem(const GangRecord& gang) const;
  /// What of its wishes does not count; empty: all do.
  std::string note(const GangRecord& gang) const {
    return placement::preference_left_out(gang.spec.preferred_level, domains_);
  }
  /// The gang that nodes are kept for; empty: none.
  std::string_view kept_for() const { return kept_ ? std::string_view(kept_->gang) : std::string_view(); }
  /// Some nodes are kept or held for gangs.
  bool keeps_nodes() const { return kept_.has_value() || !held_.empty(); }

  using Tally = GangTally;
  /// Kept up to date with every change, so that a question does not look at all members.
  static const Tally& tally(const GangRecord& gang) { return gang.tally; }

 private:
  using Member = GangMemberRecord;
  using Entry = std::pair<const std::string, Member>;  // UID and member
  /// Those that a search is about, by kind.
  using Batch = std::map<std::string, std::vector<Entry*>>;
  struct Kept {
    std::string gang;
    std::int32_t priority = 0;
    std::set<NodeId> nodes;
    Nanoseconds until = 0;
  };

  GangRecord* find_gang(std::string_view uid);
  static std::int32_t missing(const GangRecord& gang, const Tally& tally);
  static bool complete(const GangRecord& gang, const Tally& tally);
  static bool whole(const GangRecord& gang, const Tally& tally);
  void erase_member(GangRecord& gang, std::string_view uid);
  void settle(GangRecord& gang);
  void give_up_place(std::string_view uid);
  void give_back_unfit(GangRecord& gang);
  std::int64_t release(GangRecord& gang);
  void end_what_is_over(Nanoseconds now);
  void look_again_at(Nanoseconds when) { next_end_ = std::min(next_end_, when); }
  bool is_reserved(std::string_view uid) const;
  void note_nodes(GangRecord& gang, const Member& member, std::span<const NodeId> nodes);
  std::optional<GangAnswer> answer_place(GangRecord& gang, Entry& member, std::span<const NodeId> nodes);
  GangAnswer wait(Entry& member, std::string reason, GangAnswer::Kind kind = GangAnswer::Kind::kWait);

  // gangs_tally.cpp
  void booking_changed(std::string_view uid) override;
  MemberState state_of(const Entry& entry) const;
  static void count(GangRecord& gang, const Member& member, std::int32_t by);
  void recount(GangRecord& gang, Entry& member);

  // gangs_place.cpp
  std::optional<GangAnswer> place(GangRecord& gang, Entry& asker);
  bool may_be_placed(const GangRecord& gang) const;
  Batch batch_of(GangRecord& gang, Entry* asker, const Tally& tally);
  bool gathered(const GangRecord& gang, const Batch& batch) const;
  enum class Where {
    kAllowed,   ///< where kube-scheduler lets them go
    kVacated,   ///< where members were that are gone
    kMakeable,  ///< also where kube-scheduler could make room
    kPlanned,   ///< where they go once the victims are gone
  };
  /// A request with what it points to.
  struct Asked {
    placement::GangRequest request;
    std::vector<std::vector<NodeId>> lists{};
    std::vector<NodeId> bound{};
  };
  std::vector<NodeId> nodes_for(const GangRecord& gang, const std::string& kind, Where where) const;
  Asked request_of(const GangRecord& gang, const Batch& batch, const Tally& tally, Where where) const;
  placement::GangDecision search(const GangRecord& gang, const Batch& batch, const Tally& tally, Where where);
  bool take(GangRecord& gang, const Batch& batch, const placement::GangPlan& plan, const Entry* asker);
  static std::vector<Entry*> members_of(const GangRecord& gang, const Batch& batch, const placement::GangPlan& plan);
  static bool roles_met(const GangRecord& gang, const Tally& tally, const Batch& batch,
                        const placement::GangPlan& plan);
  void refuse(GangRecord& gang, const placement::GangRejected& rejected);
  GangAnswer refusal_answer(const GangRecord& gang) const;
  std::vector<NodeId> allowed(const GangRecord& gang, const std::string& kind) const;
  std::vector<NodeId> vacated_nodes(const GangRecord& gang, const std::string& kind) const;
  std::vector<NodeId> occupied(const GangRecord& gang) const;
  void take_vacated();

  // gangs_preempt.cpp
  void note_rooms(GangRecord& gang, const Member& member, std::span<const RoomToMake> rooms);
  bool rooms_gathered(const GangRecord& gang, const Batch& batch) const;
  bool decide_victims(GangRecord& gang, const Batch& batch, const Tally& tally);
  std::map<NodeId, std::int64_t> evictions_allowed(const GangRecord& gang, const Batch& batch) const;
  VictimPoolBuilder victim_pool(const GangRecord& gang, const Batch& batch,
                                const std::map<NodeId, std::int64_t>& allowed) const;
  void adopt(GangRecord& gang, const Batch& batch, GangPreemption preemption, const placement::GangPlan& plan);
  void expect_evictions(const GangRecord& gang);
  void kick_for_victims(const GangRecord& gang, std::string_view asker);
  std::vector<std::string> victims_left(const GangPreemption& preemption) const;
  bool still_helps(GangRecord& gang);
  std::optional<GangVictims> victims_for(const GangRecord& gang, std::string_view uid) const;
  void end_preemption(GangRecord& gang);
  void expire_preemption(GangRecord& gang);
  bool is_for_another(NodeId node, std::string_view gang, std::int32_t priority) const;
  // gangs_yield.cpp
  struct Wanted {
    GangRecord& gang;
    const Batch& batch;
    const Tally& tally;
  };
  placement::GangDecision search_yielding(const Wanted& wanted);
  placement::GangDecision search_without(const std::vector<GangRecord*>& others, const Wanted& wanted);
  bool takes_from(const placement::GangPlan& plan, const GangRecord& other) const;
  std::vector<GangRecord*> who_yields(std::vector<GangRecord*> lower, const Wanted& wanted);

  // gangs_wake.cpp
  void update_kept();
  struct Lack;
  struct KeepableNode {
    std::int64_t free;   // GPUs
    std::int64_t holds;  // GPUs that members of the largest size could have
    NodeId id;
  };
  Lack lack_of(GangRecord& gang);
  std::map<std::uint64_t, std::vector<KeepableNode>> keepable(const Lack& lack, int level) const;
  std::optional<Kept> nodes_to_keep(GangRecord& gang);
  bool ranks_before(const GangRecord& a, const GangRecord& b) const;
  void kick(const Entry& member, const std::string& state);
  void kick_scouts(GangRecord& gang, const Batch& batch, const Entry* asker = nullptr);
  void wake_blocked();

  // gangs_slots.cpp
  KeptPlan make_plan(GangRecord& gang, const std::string& ns);
  void discard_maps(GangRecord& gang, const PlanMapName* except = nullptr);

  // gangs_restore.cpp
  struct Believed;
  struct CommonDomain {
    std::optional<std::uint64_t> only;  // where members are that have a place; nothing: anywhere
    int level;
  };
  std::map<std::string, std::vector<const SlotClaim*>> by_gang(const std::vector<SlotClaim>& claims) const;
  Believed believe(GangRecord& gang, const std::vector<const SlotClaim*>& claims, const PlanTexts& maps,
                   std::vector<RefusedSlot>& refused);
  std::optional<CommonDomain> common_domain(const GangRecord& gang) const;
  std::uint64_t domain_at(NodeId node, int level) const;
  bool restore_place(GangRecord& gang, const Entry& member, const StoredSlot& slot, const CommonDomain& domain);
  void restore_gang(GangRecord& gang, const Believed& believed);
  void note_vacated(GangRecord& gang, const Believed& believed);

  Bookings& bookings_;
  placement::ClusterState& cluster_;
  placement::Domains& domains_;
  placement::GangPlanner planner_;
  const Clock& clock_;
  GangTimes times_;
  std::map<std::string, GangRecord, std::less<>> gangs_;     // by key
  std::map<std::string, std::string, std::less<>> gang_of_;  // UID -> key
  std::optional<Kept> kept_;
  std::map<NodeId, std::string> held_;  // nodes of preemptions, and for which gang
  Evictions* evictions_ = nullptr;
  std::deque<GangKick> kicks_;
  std::set<std::string, std::less<>> kicked_uids_;                  // of kicks_
  Nanoseconds next_end_ = std::numeric_limits<Nanoseconds>::max();  // nothing ends before
  std::uint64_t arrivals_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t freed_ = 0;
  bool waking_ = false;         // blocked gangs may have to be woken
  bool nodes_changed_ = false;  // those that never fit, too
  bool keeps_plans_ = false;
  std::deque<PlanMapName> discarded_;
  GangFigures figures_;
};

}  // namespace mortise::extender
