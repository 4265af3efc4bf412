#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/extender/gangs.h"

namespace mortise::extender {
namespace {

/// Pods that own a ConfigMap when no group object does: it must not become too large.
constexpr std::size_t kMaxPodOwners = 64;
constexpr std::size_t kMaxDiscarded = 65'536;

struct Planned {
  std::string uid;
  StoredSlot slot;
  std::uint64_t order;
};

using MembersByRole = std::map<std::string, std::vector<Planned>>;

/// As long as the ConfigMap is of use, one of them is there: the group object, else members.
std::vector<kube::OwnerReference> owners_of(const GangRecord& gang, const std::string& ns) {
  if (!gang.spec.object.uid.empty()) return {gang.spec.object};
  std::vector<kube::OwnerReference> owners;
  for (const auto& [uid, member] : gang.members) {
    const placement::PodRequest& pod = member.pod.request;
    if (pod.ns == ns && owners.size() < kMaxPodOwners) owners.push_back({"v1", "Pod", pod.name, uid});
  }
  return owners;
}

/// Whether each member's annotation is small enough.
bool fits(GangSlot slot, const MembersByRole& members) {
  return std::all_of(members.begin(), members.end(), [&](const auto& of_role) {
    slot.role = of_role.first;
    slot.index = of_role.second.size() - 1;  // none has more digits
    return slot_text(slot).ok();
  });
}

}  // namespace

void Gangs::discard_maps(GangRecord& gang, const PlanMapName* except) {
  std::erase_if(gang.maps, [&](const PlanMapName& name) {
    if (except != nullptr && name == *except) return false;
    if (discarded_.size() < kMaxDiscarded) discarded_.push_back(name);
    return true;
  });
}

std::optional<PlanMapName> Gangs::next_discarded() {
  if (discarded_.empty()) return std::nullopt;
  PlanMapName name = std::move(discarded_.front());
  discarded_.pop_front();
  return name;
}

/// Of all that nobody is bound to, so that no earlier plan is needed beside it. Nothing in it when it is too large:
/// then its members are bound without.
KeptPlan Gangs::make_plan(GangRecord& gang, const std::string& ns) {
  MembersByRole members;
  for (const auto& [uid, member] : gang.members) {
    const Booking* booking = bookings_.find(uid);
    if (booking == nullptr || booking->stage == Booking::Stage::kBound || !booking->allocation) continue;
    const placement::DeviceSet& devices = cluster_.allocation(*booking->allocation)->devices;
    members[member.pod.role].push_back({uid, {uid_tag(uid), booking->node, devices}, member.order});
  }
  StoredPlan plan{++gang.revision, {}};
  for (auto& [role, of_role] : members) {
    std::sort(of_role.begin(), of_role.end(), [](const Planned& a, const Planned& b) {
      return std::tie(a.slot.node, a.order) < std::tie(b.slot.node, b.order);
    });
    for (const Planned& member : of_role) plan.roles[role].push_back(member.slot);
  }
  KeptPlan kept;
  const Result<std::string> text = plan_text(plan);
  if (text.ok()) kept.common = {gang_digest(gang.spec.key), {}, 0, plan_digest(gang.spec.key, *text), plan, {}};
  const bool inlined = text.ok() && plan.slots() <= kMaxInlineSlots && fits(kept.common, members);
  if (!inlined) {
    kept.common.all.reset();
    kept.common.ns = ns;
  }
  if (!text.ok() || (!inlined && !fits(kept.common, members))) {
    ++figures_.not_kept;
    return {};
  }
  for (const auto& [role, of_role] : members) {
    for (std::size_t i = 0; i < of_role.size(); ++i) kept.slots.emplace(of_role[i].uid, std::pair(role, i));
  }
  if (inlined) return kept;
  kept.map = std::make_shared<PlanMap>(
      PlanMap{{ns, plan_map_name(kept.common.plan)}, kept.common.gang, gang.spec.name, *text, owners_of(gang, ns)});
  gang.maps.insert(kept.map->name);
  return kept;
}

GangSlotNote Gangs::slot_of(std::string_view uid) {
  GangRecord* gang = keeps_plans_ ? find_gang(uid) : nullptr;
  if (gang == nullptr) return {};
  if (!gang->plan) gang->plan = make_plan(*gang, gang->members.find(uid)->second.pod.request.ns);
  const auto found = gang->plan->slots.find(uid);
  if (found == gang->plan->slots.end()) return {};
  GangSlot slot = gang->plan->common;
  std::tie(slot.role, slot.index) = found->second;
  const Result<std::string> text = slot_text(slot);
  return text.ok() ? GangSlotNote{*text, slot.plan, gang->plan->map} : GangSlotNote{};
}

void Gangs::bound_with(std::string_view uid, const std::string& plan) {
  GangRecord* gang = find_gang(uid);
  if (gang == nullptr || !gang->plan || plan.empty() || gang->plan->common.plan != plan) return;
  discard_maps(*gang, gang->plan->map == nullptr ? nullptr : &gang->plan->map->name);
}

}  // namespace mortise::extender
