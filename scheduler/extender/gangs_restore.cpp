#include <algorithm>
#include <utility>
#include <variant>

#include "scheduler/extender/gangs.h"
#include "scheduler/placement/preemption.h"

namespace mortise::extender {
namespace {

/// Of one gang. More plans that somebody is bound by and that were too large for an annotation nobody needs.
constexpr std::size_t kMaxMapsPerGang = 16;

struct Fault {
  SlotFault kind;
  std::string why;
};

Fault inconsistent(std::string why) {
  return {SlotFault::kInconsistent, std::move(why)};
}

PlanMapName map_of(const GangSlot& slot) {
  return {slot.ns, plan_map_name(slot.plan)};
}

/// The plan that the slot names, if that is what it is.
std::variant<StoredPlan, Fault> plan_of(const GangSlot& slot, const std::string& gang, const Gangs::PlanTexts& maps) {
  if (slot.all) {
    const Result<std::string> text = plan_text(*slot.all);
    if (text.ok() && plan_digest(gang, *text) == slot.plan) return *slot.all;
    return inconsistent("its plan is another one than it names");
  }
  const PlanMapName name = map_of(slot);
  const auto found = maps.find(name);
  if (found == maps.end()) return Fault{SlotFault::kLost, "the ConfigMap of its plan was not read"};
  if (!found->second.ok()) return Fault{SlotFault::kLost, found->second.message()};
  const std::string& text = *found->second;
  if (plan_digest(gang, text) != slot.plan) return inconsistent("ConfigMap " + name.second + " holds another plan");
  Result<StoredPlan> plan = parse_plan(text);
  if (!plan.ok()) return Fault{SlotFault::kMalformed, plan.message()};
  return *std::move(plan);
}

}  // namespace

/// Of a gang: the plans that bound members name, with good reason.
struct Gangs::Believed {
  std::map<std::string, StoredPlan> plans{};  // by digest

  /// The earliest first.
  std::vector<const StoredPlan*> in_order() const {
    std::vector<const StoredPlan*> order;
    for (const auto& [digest, plan] : plans) order.push_back(&plan);
    std::stable_sort(order.begin(), order.end(),
                     [](const StoredPlan* a, const StoredPlan* b) { return a->revision < b->revision; });
    return order;
  }
};

/// Those of bound members, by the gang that they are of, if some of its members wait.
std::map<std::string, std::vector<const SlotClaim*>> Gangs::by_gang(const std::vector<SlotClaim>& claims) const {
  std::map<std::string, std::vector<const SlotClaim*>> found;
  for (const auto& [key, gang] : gangs_) {
    if (tally(gang).waiting > 0) found.try_emplace(key);
  }
  for (const SlotClaim& claim : claims) {
    const Booking* booking = bookings_.find(claim.uid);
    const auto key = gang_of_.find(claim.uid);
    if (booking == nullptr || booking->stage != Booking::Stage::kBound || key == gang_of_.end()) continue;
    if (const auto gang = found.find(key->second); gang != found.end()) gang->second.push_back(&claim);
  }
  return found;
}

std::set<PlanMapName> Gangs::maps_claimed(const std::vector<SlotClaim>& claims) const {
  std::set<PlanMapName> all;
  for (const auto& [key, of_gang] : by_gang(claims)) {
    const GangRecord& gang = gangs_.find(key)->second;
    std::set<std::string, std::less<>> namespaces;
    for (const auto& [uid, member] : gang.members) namespaces.insert(member.pod.request.ns);
    std::set<PlanMapName> names;
    for (const SlotClaim* claim : of_gang) {
      const Result<GangSlot> slot = parse_slot(claim->text);
      if (!slot.ok() || slot->all || !namespaces.contains(slot->ns)) continue;
      if (names.size() < kMaxMapsPerGang) names.insert(map_of(*slot));
    }
    all.merge(names);
  }
  return all;
}

Gangs::Believed Gangs::believe(GangRecord& gang, const std::vector<const SlotClaim*>& claims, const PlanTexts& maps,
                               std::vector<RefusedSlot>& refused) {
  Believed believed;
  const auto judge = [&](const SlotClaim& claim) -> std::optional<Fault> {
    const Result<GangSlot> slot = parse_slot(claim.text);
    if (!slot.ok()) return Fault{SlotFault::kMalformed, slot.message()};
    if (slot->gang != gang_digest(gang.spec.key)) return inconsistent("it is of another gang");
    const auto known = believed.plans.find(slot->plan);
    std::variant<StoredPlan, Fault> read;
    if (known == believed.plans.end()) {
      read = plan_of(*slot, gang.spec.key, maps);
      if (const auto* fault = std::get_if<Fault>(&read)) return *fault;
    }
    const StoredPlan& plan = known == believed.plans.end() ? std::get<StoredPlan>(read) : known->second;
    const StoredSlot* place = plan.find(slot->role, slot->index);
    if (place == nullptr) return inconsistent("its plan has no such slot");
    if (slot->role != gang.members.find(claim.uid)->second.pod.role || place->tag != uid_tag(claim.uid)) {
      return inconsistent("its plan has that slot for another pod");
    }
    if (place->node != bookings_.find(claim.uid)->node) return inconsistent("its plan has it on another node");
    if (known != believed.plans.end()) return std::nullopt;
    believed.plans.emplace(slot->plan, std::get<StoredPlan>(std::move(read)));
    if (!slot->all) gang.maps.insert(map_of(*slot));
    return std::nullopt;
  };
  for (const SlotClaim* claim : claims) {
    const std::optional<Fault> fault = judge(*claim);
    if (!fault) continue;
    ++figures_.slots_refused[static_cast<std::size_t>(fault->kind)];
    const placement::PodRequest& pod = gang.members.find(claim->uid)->second.pod.request;
    refused.push_back({pod.ns + "/" + pod.name, fault->why});
  }
  return believed;
}

/// Of the required level. Nothing: there is no such level, or members that have a place are apart.
std::optional<Gangs::CommonDomain> Gangs::common_domain(const GangRecord& gang) const {
  CommonDomain domain{std::nullopt, placement::Domains::kCluster};
  if (gang.spec.required_level.empty()) return domain;
  const auto level = domains_.find_level(gang.spec.required_level);
  if (!level) return std::nullopt;
  domain.level = *level;
  for (const NodeId node : occupied(gang)) {
    const std::uint64_t there = domain_at(node, *level);
    if (domain.only.value_or(there) != there) return std::nullopt;
    domain.only = there;
  }
  return domain;
}

std::uint64_t Gangs::domain_at(NodeId node, int level) const {
  return level == domains_.node_level() ? node.value : domains_.domain_of(node, level).value;
}

/// On the node of the plan: with its devices if they are free, else with what is best there now.
bool Gangs::restore_place(GangRecord& gang, const Entry& member, const StoredSlot& slot, const CommonDomain& domain) {
  const placement::PodRequest& pod = member.second.pod.request;
  const auto node = cluster_.find_node(slot.node);
  if (!node || !domains_.knows(*node)) return false;
  if (domain.only && domain_at(*node, domain.level) != *domain.only) return false;
  if (node_reason(cluster_, *node, cluster_.intern(pod)) != placement::Reason::kNone) return false;
  constexpr placement::Knowledge kForeseen = placement::Knowledge::kPredicted;
  const bool same_size = slot.devices.size() == pod.gpus;
  if (same_size && bookings_.reserve(pod, {*node, slot.devices}, gang.expires, kForeseen).ok()) return true;
  placement::GangRequest request;
  placement::GangRole& role = request.roles.emplace_back();
  role.name = "member";
  role.pod = pod;
  role.count = role.min = 1;
  role.allowed = {&*node, 1};
  const placement::GangDecision decision = planner_.plan(request);
  const auto* plan = std::get_if<placement::GangPlan>(&decision);
  if (plan == nullptr) return false;
  return bookings_.reserve(pod, {*node, plan->members.front().devices}, gang.expires, kForeseen).ok();
}

void Gangs::restore_gang(GangRecord& gang, const Believed& believed) {
  std::map<std::pair<std::string, std::string>, const StoredSlot*> places;  // by role and tag
  for (const StoredPlan* plan : believed.in_order()) {
    gang.revision = std::max(gang.revision, plan->revision);
    for (const auto& [role, slots] : plan->roles) {
      for (const StoredSlot& slot : slots) places[{role, slot.tag}] = &slot;  // the latest word counts
    }
  }
  const std::optional<CommonDomain> domain = common_domain(gang);
  if (!domain || !may_be_placed(gang) || !complete(gang, tally(gang))) return;
  if (gang.expires == 0) gang.booked_until = gang.expires = clock_.now() + times_.reserve_for;
  look_again_at(gang.booked_until);
  const std::string state = "restored-" + std::to_string(gang.revision);
  std::int64_t restored = 0;
  for (Entry& entry : gang.members) {
    Member& member = entry.second;
    if (member.succeeded || bookings_.find(entry.first) != nullptr) continue;
    const auto place = places.find({member.pod.role, uid_tag(entry.first)});
    if (place == places.end() || !restore_place(gang, entry, *place->second, *domain)) continue;
    ++restored;
    member.asks = 0;
    member.bind_tried = false;
    kick(entry, state);  // it may have been told to wait before
  }
  gang.plan.reset();
  figures_.restored += static_cast<std::uint64_t>(restored);
  if (tally(gang).reserved == 0) gang.expires = 0;
  note_vacated(gang, believed);
}

/// Places of members that are gone are for their replacements, as many as the gang lacks.
void Gangs::note_vacated(GangRecord& gang, const Believed& believed) {
  const Tally now = tally(gang);
  std::int32_t lacking = missing(gang, now);
  for (const GangRoleNeed& role : gang.spec.roles) {
    const auto have = now.have_by_role.find(role.name);
    lacking = std::max(lacking, role.minimum - (have == now.have_by_role.end() ? 0 : have->second));
  }
  std::set<std::string> taken;
  for (const auto& [uid, member] : gang.members) taken.insert(uid_tag(uid));
  const std::vector<const StoredPlan*> order = believed.in_order();
  for (auto plan = order.rbegin(); plan != order.rend(); ++plan) {
    for (const auto& [role, slots] : (*plan)->roles) {
      for (const StoredSlot& slot : slots) {
        if (lacking <= 0 || !taken.insert(slot.tag).second) continue;
        const auto alike = std::find_if(gang.members.begin(), gang.members.end(), [&, &role = role](const auto& entry) {
          return entry.second.pod.role == role && entry.second.pod.request.gpus == slot.devices.size();
        });
        if (alike == gang.members.end()) continue;
        gang.vacated[alike->second.kind].push_back(slot.node);
        --lacking;
      }
    }
  }
}

std::vector<RefusedSlot> Gangs::restore(const std::vector<SlotClaim>& claims, const PlanTexts& maps) {
  expire();
  domains_.refresh();
  std::vector<RefusedSlot> refused;
  std::vector<std::pair<GangRecord*, Believed>> all;
  for (const auto& [key, of_gang] : by_gang(claims)) {
    GangRecord& gang = gangs_.find(key)->second;
    if (Believed believed = believe(gang, of_gang, maps, refused); !believed.plans.empty()) {
      all.emplace_back(&gang, std::move(believed));
    }
  }
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return ranks_before(*a.first, *b.first); });
  for (auto& [gang, believed] : all) restore_gang(*gang, believed);
  // Nobody knows who was told to wait by the former extender.
  for (auto& [key, gang] : gangs_) {
    const Tally now = tally(gang);
    if (now.waiting > 0 && may_be_placed(gang) && complete(gang, now) && !whole(gang, now)) {
      kick_scouts(gang, batch_of(gang, nullptr, now));
    }
  }
  return refused;
}

}  // namespace mortise::extender
