#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/base/units.h"
#include "scheduler/extender/gang_slot.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/placement/gang.h"
#include "scheduler/placement/request.h"

namespace mortise::extender {

struct GangRoleNeed {
  std::string name;
  std::int32_t minimum = 0;

  friend bool operator==(const GangRoleNeed&, const GangRoleNeed&) = default;
};

/// What a gang asks for as a whole, whatever convention says it.
struct GangSpec {
  std::string key;         ///< no other gang has it
  std::string name;        ///< NAMESPACE/NAME, for people
  std::string convention;  ///< as kube::gang_convention_name() has it
  std::int32_t minimum = 0;
  std::vector<GangRoleNeed> roles;       ///< those with a minimum of their own
  std::string required_level;            ///< as GangRequest has them
  std::string preferred_level;           ///< likewise
  std::optional<std::int32_t> priority;  ///< of the group; none: the one that its members share
  kube::OwnerReference object;           ///< that says how large it is; without UID: none, or several
  std::string waits_for;                 ///< a reason: its size is not known yet; empty: it is
  std::string invalid;                   ///< why it cannot be placed whatever happens; empty: it can

  friend bool operator==(const GangSpec&, const GangSpec&) = default;
};

/// One pod of a gang.
struct GangPod {
  placement::PodRequest request;
  std::string role;      ///< empty: not said
  std::string selector;  ///< by which nodes are chosen; members that differ in it may go to different nodes
  bool preempts = true;  ///< false: preemptionPolicy Never
};

enum class GangPhase {
  kWaitsForObject,  ///< its size is not known
  kInvalid,
  kIncomplete,  ///< fewer members are there than must start together
  kReady,       ///< enough members are there, and kube-scheduler has not asked about each kind of them lately
  kBlocked,     ///< it does not fit now
  kNeverFits,
  kReserved,  ///< all that must start together have a place; nobody is bound
  kBinding,   ///< and some are bound, or about to be
  kRunning,   ///< all that must be there are bound, or have succeeded
  kDegraded,  ///< it has started, and fewer are there now
  kFinished,  ///< all members have succeeded
};
inline constexpr int kGangPhaseCount = static_cast<int>(GangPhase::kFinished) + 1;
std::string_view gang_phase_name(GangPhase phase);

/// 0 for a role that is not there.
std::int32_t count_of(const std::map<std::string, std::int32_t>& counts, const std::string& role);

enum class MemberState { kWaiting, kReserved, kBinding, kBound, kSucceeded };

/// Members of a gang by what they hold.
struct GangTally {
  std::int32_t succeeded = 0;
  std::int32_t bound = 0;
  std::int32_t binding = 0;
  std::int32_t reserved = 0;
  std::int32_t waiting = 0;
  /// Without roles of nobody.
  std::map<std::string, std::int32_t> have_by_role{};
  std::map<std::string, std::int32_t> waiting_by_role{};

  std::int32_t have() const { return succeeded + bound + binding + reserved; }
  bool holds_on() const { return bound + binding + succeeded > 0; }
  /// Counts `by` more members of the role, which may be negative.
  void add(MemberState state, const std::string& role, std::int32_t by);

  friend bool operator==(const GangTally&, const GangTally&) = default;
};

/// One member, as far as it is known.
struct GangMemberRecord {
  GangPod pod;
  std::string kind;         ///< members of one kind are alike
  std::uint64_t order = 0;  ///< of arrival
  bool succeeded = false;
  MemberState counted = MemberState::kWaiting;  ///< in the gang's tally
  bool asked = false;                           ///< kube-scheduler has, and was told to wait
  bool bind_tried = false;                      ///< since the gang got its places
  int asks = 0;                                 ///< how often its place was the answer
};

/// A node on which kube-scheduler could make room for a member.
struct RoomToMake {
  NodeId node;
  std::optional<std::int64_t> allowed{};  ///< evictions there that violate no PodDisruptionBudget; none: all
};

/// What kube-scheduler said last of the nodes that members of one kind may go to.
struct GangKindRecord {
  std::vector<NodeId> nodes;
  Nanoseconds asked = 0;
  std::map<NodeId, Nanoseconds> aside;  ///< nodes that were refused after we had named them, and until when
  /// Where room could be made, and when kube-scheduler said so: it names a part of a large cluster each time.
  std::map<NodeId, std::pair<RoomToMake, Nanoseconds>> makeable{};
};

/// Who goes so that a gang fits, and where its members go then. Its nodes are held for it.
struct GangPreemption {
  std::int32_t priority = 0;                             ///< of the gang
  std::map<std::string, NodeId, std::less<>> places{};   ///< by UID of a member
  std::map<std::string, NodeId, std::less<>> victims{};  ///< by UID: where it is
  std::map<NodeId, std::int64_t> allowed{};              ///< as RoomToMake has it
  Nanoseconds began = 0;
  Nanoseconds until = 0;  ///< held so long; longer while victims are being deleted
};

/// What is to be evicted on a member's node.
struct GangVictims {
  NodeId node;
  std::vector<std::string> uids;  ///< the most important first
  std::int64_t pdb_violations = 0;
};

/// Why a gang is not placed. As long as neither the cluster's version nor `epoch` is another it stays so.
struct GangRefusal {
  placement::GangReason reason = placement::GangReason::kNoRoom;
  std::string detail;
  std::uint64_t version = 0;
  std::uint64_t epoch = 0;
  std::uint64_t freed = 0;  ///< how often something had become free
};

/// A ConfigMap that holds a plan, by namespace and name.
using PlanMapName = std::pair<std::string, std::string>;

/// A plan that is too large for an annotation, as it is to be stored.
struct PlanMap {
  PlanMapName name;
  std::string gang;    ///< its digest
  std::string people;  ///< its name, for them
  std::string text;
  std::vector<kube::OwnerReference> owners;  ///< when all of them are gone, so is the ConfigMap
};

/// The places of a gang's members that nobody is bound to, as the Bindings of these members tell them.
struct KeptPlan {
  GangSlot common;  ///< of all, but for role and index
  /// Role and index, by UID; of none when the plan cannot be put into words.
  std::map<std::string, std::pair<std::string, std::size_t>, std::less<>> slots{};
  std::shared_ptr<const PlanMap> map{};  ///< null: the annotations have it all
};

/// What the Binding of a member carries of its gang's plan.
struct GangSlotNote {
  std::string annotation;                ///< empty: nothing
  std::string plan;                      ///< its digest
  std::shared_ptr<const PlanMap> map{};  ///< to be stored before the Binding is sent; null: there is none
};

/// What the annotation of a bound member says; not believed yet.
struct SlotClaim {
  std::string uid;
  std::string text;
};

/// A pod whose claim is not believed.
struct RefusedSlot {
  std::string pod;  ///< NAMESPACE/NAME
  std::string why;  ///< one line
};

struct GangRecord {
  GangSpec spec;
  std::uint64_t order = 0;                                                 ///< of arrival
  std::map<std::string, GangMemberRecord, std::less<>> members{};          ///< by UID
  GangTally tally{};                                                       ///< of members, and of those in `succeeded`
  std::map<std::int32_t, std::int32_t> priorities{};                       ///< how many members have each
  std::map<std::string, GangKindRecord, std::less<>> kinds{};              ///< by GangMemberRecord::kind
  std::map<std::string, std::int32_t, std::less<>> succeeded{};            ///< members that are gone since, by role
  std::map<std::string, std::vector<std::string>, std::less<>> vacated{};  ///< nodes of members that are gone, by kind
  std::optional<GangRefusal> refusal{};
  std::optional<Nanoseconds> blocked_since{};  ///< since when it has not fit
  std::optional<GangPreemption> preemption{};
  std::optional<std::pair<std::uint64_t, std::uint64_t>> no_preemption{};  ///< as of this version and epoch
  Nanoseconds expires = 0;              ///< when places that are only reserved are given back; 0: there are none
  Nanoseconds booked_until = 0;         ///< none of their bookings ends before; not later than `expires`
  std::optional<Nanoseconds> kicked{};  ///< when members were last woken to try again
  bool left_unused = false;             ///< its places ran out, and no member came since
  std::uint64_t kicked_for = 0;         ///< how often something had become free by then
  std::optional<KeptPlan> plan{};       ///< nothing: not made since places were last taken
  std::uint64_t revision = 0;           ///< of the last plan
  std::set<PlanMapName> maps{};         ///< that hold plans of it
};

/// What a member's question comes to.
struct GangAnswer {
  enum class Kind {
    kPlace,  ///< on `node`
    kWait,
    kNever,  ///< no change of the pods on the nodes would help
  };
  Kind kind = Kind::kWait;
  NodeId node{};
  std::string reason;    ///< where it has no place; the same text while nothing changes
  bool refused = false;  ///< the node that was named before did not work out
};

/// A member to be told of in the API, so that kube-scheduler asks about it again.
struct GangKick {
  std::string ns;
  std::string name;
  std::string uid;
  std::string state;  ///< the value of the annotation
};

/// Why what a bound member says of its gang's plan is not believed.
enum class SlotFault {
  kMalformed,     ///< it is not what we write
  kInconsistent,  ///< it is of another gang, pod or node, or its plan is another one than it names
  kLost,          ///< the ConfigMap of the plan is not there, or could not be read
};
inline constexpr std::size_t kSlotFaultCount = 3;
std::string_view slot_fault_name(SlotFault fault);

struct GangFigures {
  std::uint64_t plans = 0;        ///< gangs, or what they lacked, that got their places
  std::uint64_t expired = 0;      ///< times that places were given back because they were not used
  std::uint64_t yielded = 0;      ///< likewise for a gang of higher priority
  std::uint64_t refusals = 0;     ///< searches that found no place
  std::uint64_t preemptions = 0;  ///< times that it was decided who goes for a gang
  std::uint64_t restored = 0;     ///< places that a former extender had reserved, taken again
  std::uint64_t not_kept = 0;     ///< plans that could not be put into words: too large, for instance
  std::array<std::uint64_t, kSlotFaultCount> slots_refused{};  ///< by SlotFault
};

}  // namespace mortise::extender
