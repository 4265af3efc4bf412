#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "scheduler/extender/evictions.h"
#include "scheduler/extender/gang_feed.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/victim_pool.h"

namespace mortise::extender {
namespace {

using placement::Eviction;
using placement::EvictionQuestion;
using placement::Reason;

/// kube-scheduler asks filter and preempt within one attempt. What filter was told before that says little: the node
/// may have been tainted since.
constexpr Nanoseconds kOneAttempt = 30 * kSecond;

struct Victim {
  std::string uid;
  std::int64_t priority = std::numeric_limits<std::int64_t>::min();  // lowest: not known
};

bool is_proposed(const PreemptionCandidate& candidate, std::string_view uid) {
  return std::any_of(candidate.victims.begin(), candidate.victims.end(),
                     [&](const ProposedVictim& victim) { return victim.uid == uid; });
}

/// A pod of the node's that kube-scheduler knows, too, and by its UID.
bool can_be_victim(const std::string& uid, const Booking& booking, const PreemptionCandidate& candidate) {
  if (!booking.allocation || uid == booking.request.ns + "/" + booking.request.name) return false;
  return booking.stage != Booking::Stage::kReserved || is_proposed(candidate, uid);
}

/// The proposed pods that are not on the books here, so that only kube-scheduler knows what they hold; each once.
std::vector<Victim> strangers(const PreemptionCandidate& candidate, std::int32_t below, const Bookings& bookings) {
  std::vector<Victim> all;
  std::set<std::string_view> seen;
  for (const ProposedVictim& victim : candidate.victims) {
    if (victim.uid.empty() || !seen.insert(victim.uid).second) continue;
    const Booking* known = bookings.find(victim.uid);
    if (known != nullptr && known->node == candidate.node && known->allocation) continue;
    Victim stranger{std::string(victim.uid)};
    if (known != nullptr) {
      stranger.priority = known->request.priority;
    } else if (victim.priority) {
      stranger.priority = *victim.priority;
    }
    if (stranger.priority < below) all.push_back(std::move(stranger));
  }
  return all;
}

std::int64_t count_proposed(const PreemptionCandidate& candidate) {
  std::set<std::string_view> uids;
  for (const ProposedVictim& victim : candidate.victims) {
    if (!victim.uid.empty()) uids.insert(victim.uid);
  }
  return static_cast<std::int64_t>(uids.size());
}

NodeVictims as_proposed(const PreemptionCandidate& candidate) {
  NodeVictims node{std::string(candidate.node), {}, candidate.pdb_violations};
  for (const ProposedVictim& victim : candidate.victims) node.uids.emplace_back(victim.uid);
  return node;
}

}  // namespace

/// Whether the pod could be placed without evicting anybody: then it should be.
bool Handlers::has_fitting_node(const PreemptionQuestion& question, ShapeId shape) {
  const auto fits = [&](NodeId node) {
    const bool present = cluster_.find_node(cluster_.node_name(node)) == node;
    return present && node_reason(cluster_, node, shape) == Reason::kNone;
  };
  // Where kube-scheduler itself sees no need for a victim, it would have to be us.
  const auto free_for_us = [&](const PreemptionCandidate& candidate) {
    const auto node = candidate.victims.empty() ? cluster_.find_node(candidate.node) : std::nullopt;
    return node && fits(*node);
  };
  const auto& candidates = question.args.candidates;
  if (std::any_of(candidates.begin(), candidates.end(), free_for_us)) return true;
  const AskedPod* memory = asked_pods_.find(question.pod.pod.uid, clock_.now());
  return memory != nullptr && memory->fitting && clock_.now() - memory->answered <= kOneAttempt &&
         fits(*memory->fitting);
}

std::vector<NodeVictims> Handlers::preempt(const PreemptionQuestion& question) {
  const PodQuestion& pod = question.pod;
  std::vector<NodeVictims> nodes;
  const bool ours = is_ours(pod.scheduler);
  if (!pod.preempts || (ours && !pod.invalid.empty()) || find_bound(pod.pod.uid) != nullptr) return nodes;
  if (ours && is_gang_member(pod)) return preempt_for_gang(question);
  if (!ours || pod.unmanaged()) {
    for (const PreemptionCandidate& candidate : question.args.candidates) nodes.push_back(as_proposed(candidate));
    return nodes;
  }
  drop_expired();
  return as_asked(pod, [&](placement::ClusterState& cluster) {
    const ShapeId shape = cluster.intern(pod.pod);
    if (pod.decisive && has_fitting_node(question, shape)) return nodes;
    placement::EvictionBudget budget;
    for (const PreemptionCandidate& candidate : question.args.candidates) {
      NodeVictims victims = victims_on(cluster, shape, pod, candidate, budget);
      // kube-scheduler takes a node without victims for an error.
      if (!victims.uids.empty()) nodes.push_back(std::move(victims));
    }
    return nodes;
  });
}

/// An error is the fault of the pod or its group object: filter says so, and nobody is to go.
bool Handlers::is_gang_member(const PodQuestion& pod) {
  if (gangs_ == nullptr) return false;
  const Result<bool> member = gang_feed_->see(pod.object);
  return !member.ok() || *member;
}

/// The member's own node is the only candidate: which one of several kube-scheduler takes nobody could foresee.
std::vector<NodeVictims> Handlers::preempt_for_gang(const PreemptionQuestion& question) {
  const std::string& uid = question.pod.pod.uid;
  if (!gangs_->is_member(uid)) return {};
  drop_expired();
  std::vector<RoomToMake> rooms;
  for (const PreemptionCandidate& candidate : question.args.candidates) {
    const auto node = cluster_.find_node(candidate.node);
    if (!node) continue;
    RoomToMake room{*node};
    if (candidate.pdb_violations > 0) {
      room.allowed = std::max<std::int64_t>(0, count_proposed(candidate) - candidate.pdb_violations);
    }
    rooms.push_back(room);
  }
  std::optional<GangVictims> victims = gangs_->preempt(uid, rooms);
  if (!victims) return {};
  NodeVictims answer{cluster_.node_name(victims->node), std::move(victims->uids), victims->pdb_violations};
  for (const PreemptionCandidate& candidate : question.args.candidates) {
    if (candidate.node != answer.node) continue;
    for (Victim& stranger : strangers(candidate, question.pod.pod.priority, bookings_)) {
      answer.uids.push_back(std::move(stranger.uid));
    }
  }
  return {std::move(answer)};
}

/// Of gangs that go as a whole, the members on other nodes.
void Handlers::expect_evictions(const PodQuestion& pod, std::string_view node, const std::vector<std::string>& here,
                                const std::vector<std::string>& elsewhere) {
  if (evictions_ == nullptr || elsewhere.empty()) return;
  std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> by_gang;  // here, elsewhere
  for (const std::string& uid : elsewhere) by_gang[gangs_->gang_of(uid)->spec.key].second.push_back(uid);
  for (const std::string& uid : here) {
    const GangRecord* gang = gangs_->gang_of(uid);
    const auto goes_whole = gang == nullptr ? by_gang.end() : by_gang.find(gang->spec.key);
    if (goes_whole != by_gang.end()) goes_whole->second.first.push_back(uid);
  }
  for (const auto& [gang, uids] : by_gang) {
    evictions_->expect(pod.pod.uid + '\n' + std::string(node) + '\n' + gang, pod.pod.ns + "/" + pod.pod.name,
                       uids.first, uids.second);
  }
}

/// No victims: the node is no candidate.
NodeVictims Handlers::victims_on(placement::ClusterState& cluster, ShapeId shape, const PodQuestion& pod,
                                 const PreemptionCandidate& candidate, placement::EvictionBudget& budget) {
  const auto node = cluster.find_node(candidate.node);
  if (!node) return {};
  const std::int32_t priority = pod.pod.priority;
  // What would be freed there is a gang's.
  if (gangs_ != nullptr && gangs_->kept_from(*node, pod.pod.uid, priority)) return {};
  std::vector<Victim> victims = strangers(candidate, priority, bookings_);
  // Budgets are not told, only how many the proposal would violate: as if one budget were over all pods of the node and
  // allowed the others.
  const std::int64_t allowed = std::max<std::int64_t>(0, count_proposed(candidate) - candidate.pdb_violations);
  VictimPoolBuilder pool(bookings_, gangs_, clock_, evictions_ == nullptr);
  std::vector<std::uint32_t> budgets;
  if (candidate.pdb_violations > 0) {
    pool.pool().budgets = {allowed - static_cast<std::int64_t>(victims.size())};
    budgets.push_back(0);
  }
  bookings_.for_each_on(candidate.node, [&](const std::string& uid, const Booking& booking) {
    if (pool.priority_of(uid, booking) >= priority || !can_be_victim(uid, booking, candidate)) return;
    pool.add(uid, booking, is_proposed(candidate, uid), budgets);
  });
  EvictionQuestion question{std::move(pool.pool()), shape, priority, *node};
  std::optional<Eviction> found = placement::cheapest_eviction(cluster, question, budget);
  if (!found) return {};
  // Where nothing is missing for us, kube-scheduler has reasons that we do not see. Its proposal may cut a gang.
  if (found->victims.empty()) {
    for (std::size_t i = 0; i < question.pods.size(); ++i) {
      if (question.pods[i].proposed) found->victims.push_back(i);
    }
    found->victims = placement::with_their_gangs(question, std::move(found->victims));
  }
  std::vector<std::string> here;
  std::vector<std::string> elsewhere;
  for (const std::size_t victim : found->victims) {
    const Booking& booking = *bookings_.find(pool.uid(victim));
    (booking.node == candidate.node ? here : elsewhere).push_back(pool.uid(victim));
    if (booking.node == candidate.node) victims.push_back({pool.uid(victim), booking.request.priority});
  }
  expect_evictions(pod, candidate.node, here, elsewhere);
  // kube-scheduler takes the first for the one of the highest priority.
  std::stable_sort(victims.begin(), victims.end(),
                   [](const Victim& a, const Victim& b) { return a.priority > b.priority; });
  NodeVictims out{std::string(candidate.node), {}, 0};
  for (Victim& victim : victims) out.uids.push_back(std::move(victim.uid));
  if (candidate.pdb_violations > 0) {
    out.pdb_violations = std::max<std::int64_t>(0, static_cast<std::int64_t>(out.uids.size()) - allowed);
  }
  return out;
}

}  // namespace mortise::extender
