#include <algorithm>
#include <utility>
#include <variant>

#include "scheduler/extender/gangs.h"

namespace mortise::extender {

using placement::GangDecision;
using placement::GangPlan;
using placement::GangReason;
using placement::GangRejected;
using placement::GangRequest;

namespace {

constexpr std::string_view kIncomplete = "GangIncomplete: fewer members are there than must start together";
constexpr std::string_view kGathers = "GangGathers: kube-scheduler has not said yet where each kind of member may go";

/// So few of this kind that all others of its role together cannot make up for more.
std::int32_t minimum_of_kind(const GangRecord& gang, const Gangs::Tally& tally, const std::string& role,
                             std::int32_t count) {
  const auto need = std::find_if(gang.spec.roles.begin(), gang.spec.roles.end(),
                                 [&](const GangRoleNeed& needed) { return needed.name == role; });
  if (need == gang.spec.roles.end()) return 0;
  const auto have = tally.have_by_role.find(role);
  const auto waiting = tally.waiting_by_role.find(role);
  const std::int32_t missing = need->minimum - (have == tally.have_by_role.end() ? 0 : have->second);
  const std::int32_t others = (waiting == tally.waiting_by_role.end() ? 0 : waiting->second) - count;
  return std::clamp(missing - others, 0, count);
}

}  // namespace

/// Everybody who waits, as long as the gang lacks somebody; then each for itself.
Gangs::Batch Gangs::batch_of(GangRecord& gang, Entry* asker, const Tally& tally) {
  Batch batch;
  if (asker != nullptr && whole(gang, tally)) {
    batch[asker->second.kind].push_back(asker);
    return batch;
  }
  for (Entry& entry : gang.members) {
    if (!entry.second.succeeded && bookings_.find(entry.first) == nullptr) batch[entry.second.kind].push_back(&entry);
  }
  for (auto& [kind, members] : batch) {
    std::sort(members.begin(), members.end(),
              [](const Entry* a, const Entry* b) { return a->second.order < b->second.order; });
  }
  return batch;
}

/// While pods are evicted for it, kube-scheduler asks only about those members that have room already.
bool Gangs::gathered(const GangRecord& gang, const Batch& batch) const {
  return gang.preemption || std::all_of(batch.begin(), batch.end(), [&](const auto& part) {
           const auto kind = gang.kinds.find(part.first);
           return kind != gang.kinds.end() && clock_.now() - kind->second.asked < times_.fresh_for;
         });
}

std::vector<NodeId> Gangs::allowed(const GangRecord& gang, const std::string& kind) const {
  std::vector<NodeId> nodes;
  const auto known = gang.kinds.find(kind);
  if (known == gang.kinds.end()) return nodes;
  const std::int32_t own = priority(gang);
  for (const NodeId node : known->second.nodes) {
    if (known->second.aside.contains(node) || !domains_.knows(node)) continue;
    if (is_for_another(node, gang.spec.key, own)) continue;
    nodes.push_back(node);
  }
  return nodes;
}

/// Where members of this kind were that are gone.
std::vector<NodeId> Gangs::vacated_nodes(const GangRecord& gang, const std::string& kind) const {
  std::vector<NodeId> nodes;
  const auto names = gang.vacated.find(kind);
  if (names == gang.vacated.end()) return nodes;
  for (const std::string& name : names->second) {
    const auto node = cluster_.find_node(name);
    if (node && domains_.knows(*node)) nodes.push_back(*node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

/// Where members are that hold a place.
std::vector<NodeId> Gangs::occupied(const GangRecord& gang) const {
  std::vector<NodeId> nodes;
  for (const auto& [uid, member] : gang.members) {
    const Booking* booking = member.succeeded ? nullptr : bookings_.find(uid);
    const auto node = booking == nullptr ? std::nullopt : cluster_.find_node(booking->node);
    if (node && domains_.knows(*node)) nodes.push_back(*node);
  }
  return nodes;
}

std::vector<NodeId> Gangs::nodes_for(const GangRecord& gang, const std::string& kind, Where where) const {
  if (where == Where::kVacated) return vacated_nodes(gang, kind);
  std::vector<NodeId> nodes;
  if (where == Where::kPlanned) {
    for (const auto& [uid, node] : gang.preemption->places) {
      const auto member = gang.members.find(uid);
      if (member != gang.members.end() && member->second.kind == kind) nodes.push_back(node);
    }
  } else {
    nodes = allowed(gang, kind);
    if (where == Where::kAllowed) return nodes;
    const auto known = gang.kinds.find(kind);
    if (known == gang.kinds.end()) return nodes;
    for (const auto& [node, room] : known->second.makeable) {
      const bool fresh = clock_.now() - room.second < times_.fresh_for;
      if (!fresh || known->second.aside.contains(node) || !domains_.knows(node)) continue;
      if (!is_for_another(node, gang.spec.key, priority(gang))) nodes.push_back(node);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

GangDecision Gangs::search(const GangRecord& gang, const Batch& batch, const Tally& tally, Where where) {
  return planner_.plan(request_of(gang, batch, tally, where).request);
}

Gangs::Asked Gangs::request_of(const GangRecord& gang, const Batch& batch, const Tally& tally, Where where) const {
  Asked asked;
  GangRequest& request = asked.request;
  asked.lists.reserve(batch.size());
  for (const auto& [kind, members] : batch) {
    const Member& first = members.front()->second;
    placement::GangRole role;
    role.name = first.pod.role.empty() ? "member" : first.pod.role;
    role.pod = first.pod.request;
    role.count = static_cast<std::int32_t>(members.size());
    role.min = minimum_of_kind(gang, tally, first.pod.role, role.count);
    asked.lists.push_back(nodes_for(gang, kind, where));
    role.allowed = asked.lists.back();
    request.roles.push_back(std::move(role));
  }
  asked.bound = occupied(gang);
  request.min = std::max(1, missing(gang, tally));
  std::int32_t waiting = 0;
  for (const placement::GangRole& role : request.roles) waiting += role.count;
  for (placement::GangRole& role : request.roles) role.min = std::max(role.min, request.min - (waiting - role.count));
  request.required_level = gang.spec.required_level;
  request.preferred_level = gang.spec.preferred_level;
  request.bound = asked.bound;
  return asked;
}

/// A role of several kinds may lack members that its kinds' minima cannot express.
bool Gangs::roles_met(const GangRecord& gang, const Tally& tally, const Batch& batch, const GangPlan& plan) {
  std::map<std::string, std::int32_t> have = tally.have_by_role;
  for (const placement::GangMember& member : plan.members) {
    ++have[std::next(batch.begin(), member.role)->second.front()->second.pod.role];
  }
  const bool was_whole = whole(gang, tally);
  return was_whole || std::all_of(gang.spec.roles.begin(), gang.spec.roles.end(),
                                  [&](const GangRoleNeed& role) { return have[role.name] >= role.minimum; });
}

/// Who takes which place of the plan: members of a kind are alike, so each gets the node that was decided for it when
/// pods were evicted, if it is among them. kube-scheduler has nominated that node for it.
std::vector<Gangs::Entry*> Gangs::members_of(const GangRecord& gang, const Batch& batch, const GangPlan& plan) {
  std::vector<Entry*> taking(plan.members.size(), nullptr);
  std::set<const Entry*> done;
  for (std::size_t i = 0; gang.preemption && i < plan.members.size(); ++i) {
    for (Entry* entry : std::next(batch.begin(), plan.members[i].role)->second) {
      const auto place = gang.preemption->places.find(entry->first);
      if (place == gang.preemption->places.end() || place->second != plan.members[i].node) continue;
      if (!done.insert(entry).second) continue;
      taking[i] = entry;
      break;
    }
  }
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const std::vector<Entry*>& members = std::next(batch.begin(), plan.members[i].role)->second;
    if (taking[i] != nullptr) continue;
    Entry* entry = members[plan.members[i].index];
    if (done.contains(entry)) {
      entry = *std::find_if(members.begin(), members.end(), [&](const Entry* other) { return !done.contains(other); });
    }
    done.insert(entry);
    taking[i] = entry;
  }
  return taking;
}

/// All of the plan or nothing of it.
bool Gangs::take(GangRecord& gang, const Batch& batch, const GangPlan& plan, const Entry* asker) {
  // What was reserved before does not last longer for it: places that are never used must end.
  const bool goes_on = tally(gang).reserved > 0 && gang.expires != 0;
  const Nanoseconds expires = goes_on ? gang.expires : clock_.now() + times_.reserve_for;
  const std::vector<Entry*> taking = members_of(gang, batch, plan);
  std::vector<Entry*> taken;
  for (std::size_t i = 0; i < taking.size(); ++i) {
    const placement::GangMember& planned = plan.members[i];
    Entry* entry = taking[i];
    const Status reserved = bookings_.reserve(entry->second.pod.request, {planned.node, planned.devices}, expires,
                                              placement::Knowledge::kPredicted);
    if (!reserved.ok()) {
      for (const Entry* other : taken) bookings_.drop_reservation(other->first);
      return false;
    }
    taken.push_back(entry);
  }
  gang.expires = expires;
  if (!goes_on) gang.booked_until = expires;
  look_again_at(gang.booked_until);
  gang.plan.reset();
  gang.refusal.reset();
  gang.blocked_since.reset();
  if (gang.preemption) end_preemption(gang);
  if (kept_ && kept_->gang == gang.spec.key) kept_.reset();
  const std::string state = "reserved-" + std::to_string(++figures_.plans);
  for (Entry* entry : taken) {
    Member& member = entry->second;
    member.asks = 0;
    if (!goes_on) member.bind_tried = false;
    if (const auto vacated = gang.vacated.find(member.kind); vacated != gang.vacated.end()) {
      auto node = std::find(vacated->second.begin(), vacated->second.end(), bookings_.find(entry->first)->node);
      // Whoever is placed elsewhere leaves no place open behind it.
      if (node == vacated->second.end()) node = vacated->second.begin();
      vacated->second.erase(node);
      if (vacated->second.empty()) gang.vacated.erase(vacated);
    }
    if (entry != asker && member.asked) kick(*entry, state);
  }
  return true;
}

void Gangs::refuse(GangRecord& gang, const GangRejected& rejected) {
  if (!gang.blocked_since) gang.blocked_since = clock_.now();
  if (rejected.reason != GangReason::kNoRoom) gang.blocked_since.reset();
  std::string detail = rejected.detail;
  if (!rejected.exact) detail += placement::kCutShort;
  gang.refusal = GangRefusal{rejected.reason, std::move(detail), 0, 0, freed_};
  ++figures_.refusals;
}

/// The numbers of what never fits change only with the nodes, so the text stays the same while the pod waits.
GangAnswer Gangs::refusal_answer(const GangRecord& gang) const {
  const GangRefusal& refusal = *gang.refusal;
  const bool for_now = refusal.reason == GangReason::kNoRoom;
  std::string text(reason_text(refusal.reason));
  if (!for_now) text = std::string(reason_name(refusal.reason)) + ": " + refusal.detail;
  return {for_now ? GangAnswer::Kind::kWait : GangAnswer::Kind::kNever, {}, std::move(text)};
}

/// Nothing: whoever had to be placed is. Else why not.
std::optional<GangAnswer> Gangs::place(GangRecord& gang, Entry& asker) {
  const Tally now = tally(gang);
  if (!complete(gang, now)) return wait(asker, std::string(kIncomplete));
  const Batch batch = batch_of(gang, &asker, now);
  if (batch.empty()) return std::nullopt;
  if (!gathered(gang, batch)) {
    kick_scouts(gang, batch, &asker);
    return wait(asker, std::string(kGathers));
  }
  const auto refused = [&] {
    asker.second.asked = true;
    return refusal_answer(gang);
  };
  if (gang.refusal && gang.refusal->version == cluster_.version() && gang.refusal->epoch == epoch_) return refused();
  update_kept();
  GangDecision decision = GangRejected{};
  const auto look = [&](Where where) {
    if (!std::holds_alternative<GangPlan>(decision)) decision = search(gang, batch, now, where);
  };
  if (!gang.vacated.empty()) look(Where::kVacated);
  if (gang.preemption) look(Where::kPlanned);
  look(Where::kAllowed);
  const auto* rejected = std::get_if<GangRejected>(&decision);
  if (rejected != nullptr && rejected->reason == GangReason::kNoRoom) {
    GangDecision other = search_yielding({gang, batch, now});
    if (std::holds_alternative<GangPlan>(other)) decision = std::move(other);
  }
  const auto* plan = std::get_if<GangPlan>(&decision);
  if (plan != nullptr && roles_met(gang, now, batch, *plan) && take(gang, batch, *plan, &asker)) return std::nullopt;
  // Where nobody is bound yet, all of it may fit elsewhere.
  if (now.reserved > 0 && !now.holds_on() && !whole(gang, now)) {
    release(gang);
    return place(gang, asker);
  }
  rejected = std::get_if<GangRejected>(&decision);
  refuse(gang, rejected != nullptr ? *rejected : GangRejected{GangReason::kNoRoom, "a role lacks members", false});
  update_kept();
  gang.refusal->version = cluster_.version();
  gang.refusal->epoch = epoch_;
  return refused();
}

/// A member that takes the place of one that is gone gets it at once, whether it has been asked about or not: so does a
/// gang of which some were bound when the extender ended.
void Gangs::take_vacated() {
  for (auto& [key, gang] : gangs_) {
    if (gang.vacated.empty() || gang.left_unused || !may_be_placed(gang)) continue;
    const Tally now = tally(gang);
    if (!now.holds_on() || now.waiting == 0 || whole(gang, now) || !complete(gang, now)) continue;
    const Batch batch = batch_of(gang, nullptr, now);
    const GangDecision decision = search(gang, batch, now, Where::kVacated);
    const auto* plan = std::get_if<GangPlan>(&decision);
    if (plan != nullptr && roles_met(gang, now, batch, *plan)) (void)take(gang, batch, *plan, nullptr);
  }
}

}  // namespace mortise::extender
