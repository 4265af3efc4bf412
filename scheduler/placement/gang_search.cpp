#include "scheduler/placement/gang_search.h"

#include <algorithm>
#include <tuple>

#include "scheduler/base/rng.h"

namespace mortise::placement {

namespace {
/// Nodes that turned out, when it came to devices, not to take what they have room for, before the search gives up.
constexpr int kSettleTries = 16;
/// Of GPUs of a node of whose inside nothing is known.
constexpr std::int64_t kUnknownQuality = 500;
constexpr std::int64_t kFullQuality = 1000;

std::vector<MemberKind> members_of(const std::vector<GangKind>& kinds) {
  std::vector<MemberKind> members;
  for (const GangKind& kind : kinds) members.push_back(kind.member);
  return members;
}

std::vector<std::int64_t> weights_of(const std::vector<GangKind>& kinds) {
  std::vector<std::int64_t> weights;
  for (const GangKind& kind : kinds) weights.push_back(kind.weight);
  return weights;
}

/// What is needed of each kind at least, if so many members of all kinds together are.
Mix needed(Mix least, const Mix& wanted, std::int64_t min) {
  for (std::size_t k = 0; k < kMaxKinds; ++k) {
    const std::int64_t without = wanted.total() - wanted.of[k];
    least.of[k] = static_cast<std::uint16_t>(std::max<std::int64_t>(least.of[k], min - without));
  }
  return least;
}

Mix counts(const std::vector<GangKind>& kinds, std::int32_t GangKind::*which) {
  Mix mix;
  for (std::size_t k = 0; k < kinds.size(); ++k) mix.of[k] = static_cast<std::uint16_t>(kinds[k].*which);
  return mix;
}
}  // namespace

GangSearch::GangSearch(const Context& context, const GangRequest& request, std::vector<GangKind> kinds,
                       GangLevels levels, GangRooms::View view)
    : context_(context),
      request_(request),
      kinds_(std::move(kinds)),
      levels_(levels),
      weights_(weights_of(kinds_)),
      wanted_(counts(kinds_, &GangKind::count)),
      least_(counts(kinds_, &GangKind::min)),
      need_(needed(least_, wanted_, request.min)),
      node_room_(context.cluster, context.policy, members_of(kinds_)),
      rooms_(context.cluster, context.domains, node_room_,
             kind_masks(kinds_, view == GangRooms::View::kNow ? &GangRole::allowed : &GangRole::eligible,
                        context.cluster.node_count()),
             weights_, wanted_, view),
      packer_(context.cluster, rooms_, node_room_, kinds_) {
  for (const NodeId node : request.bound) {
    if (!context.domains.knows(node)) continue;
    bound_.push_back(node);
    for (int level = Domains::kCluster; level < context.domains.node_level(); ++level) {
      bound_domains_.insert(context.domains.domain_of(node, level));
    }
  }
  measure_tops(view == GangRooms::View::kNow);
}

// --- what there is room for -------------------------------------------------------------------------------------

std::int64_t GangSearch::free_gpus(const Spot& spot) const {
  if (!spot.node) return context_.domains.domain(spot.domain).free_gpus;
  return context_.cluster.state_of(*spot.node).whole_free();
}

bool GangSearch::may_hold(const Spot& spot, const Mix& members) const {
  return spot.node ? rooms_.alone(*spot.node).covers(members) : rooms_.may_hold(spot.domain, members);
}

bool GangSearch::in_use(const Spot& spot) const {
  if (!spot.node) return bound_domains_.contains(spot.domain);
  return std::find(bound_.begin(), bound_.end(), *spot.node) != bound_.end();
}

void GangSearch::collect(DomainId under, std::vector<Spot>& nodes) const {
  const Domains::Domain& domain = context_.domains.domain(under);
  for (const NodeId node : domain.nodes) nodes.push_back({under, node});
  for (const auto& [name, child] : domain.children) collect(child, nodes);
}

/// The domain of this level in which all members are that have a place.
std::optional<GangSearch::Spot> GangSearch::pin(int level) const {
  const Domains& domains = context_.domains;
  const int above = std::min(level, domains.node_level() - 1);
  const DomainId domain = domains.domain_of(bound_.front(), above);
  for (const NodeId node : bound_) {
    if (domains.domain_of(node, above) != domain || (level > above && node != bound_.front())) return std::nullopt;
  }
  if (level > above) return Spot{domain, bound_.front()};
  return Spot{domain, std::nullopt};
}

/// Where the whole gang may be, as domains of this level.
std::vector<GangSearch::Spot> GangSearch::spots(int level) {
  std::vector<Spot> found;
  if (!bound_.empty()) {
    if (const std::optional<Spot> pinned = pin(level)) found.push_back(*pinned);
  } else if (level == context_.domains.node_level()) {
    collect(Domains::root(), found);
  } else {
    for (const DomainId domain : context_.domains.at_level(level)) found.push_back({domain, std::nullopt});
  }
  return found;
}

std::int64_t GangSearch::least_gpus() const {
  std::int64_t gpus = 0;
  for (const GangKind& kind : kinds_) {
    if (kind.like->pod.gpu_milli == kWholeGpu) gpus += std::int64_t{kind.min} * kind.like->pod.gpus;
  }
  return gpus;
}

/// Sums only tell where it is of no use to look.
void GangSearch::measure_tops(bool prune) {
  const int level = std::min(levels_.required, context_.domains.node_level() - 1);
  const bool whole = level == levels_.required;
  const std::int64_t least = prune && whole ? least_gpus() : 0;
  for (const DomainId domain : context_.domains.at_level(level)) {
    if (rooms_.measured(domain) || context_.domains.domain(domain).free_gpus < least) continue;
    if (!bound_.empty() && !bound_domains_.contains(domain)) continue;
    rooms_.measure(domain);
  }
}

bool GangSearch::enough(const Mix& mix) const {
  return mix.covers(least_) && mix.total() >= std::max(1, request_.min);
}

/// The one with the most members, then with more of the first kinds.
const Mix* GangSearch::best_of(const Mixes& mixes) const {
  const Mix* best = nullptr;
  for (const Mix& mix : mixes) {
    if (enough(mix) && (best == nullptr || mix.total() > best->total())) best = &mix;
  }
  return best;
}

bool GangSearch::fits() {
  const std::vector<Spot> tops = spots(levels_.required);
  const bool found = std::any_of(tops.begin(), tops.end(), [&](const Spot& top) {
    if (!may_hold(top, need_)) return false;
    looked_ = true;
    return best_of(room(top)) != nullptr;
  });
  return found || (!exact() && !most_packed().empty());
}

/// The largest mix that some domain of the required level is known to hold; an empty one where none holds enough.
Mix GangSearch::most() {
  Mix most;
  for (const Spot& top : spots(levels_.required)) {
    const Mix* best = may_hold(top, need_) ? best_of(room(top)) : nullptr;
    if (best == nullptr) continue;
    if (std::tuple(best->total(), std::cref(*best)) > std::tuple(most.total(), std::cref(most))) most = *best;
  }
  if (exact() || most == wanted_) return most;
  const Mix packed = most_packed();
  return packed.total() > most.total() ? packed : most;
}

// --- where the search over mixes was cut short -------------------------------------------------------------------

/// Domains below in use first, then those with the most free GPUs, and in each the roomiest nodes first.
std::vector<NodeId> GangSearch::nodes_to_pack(const Spot& spot) {
  if (spot.node) return {*spot.node};
  std::vector<Spot> parts = parts_of(spot.domain);
  const auto key = [&](const Spot& part) { return std::pair(!in_use(part), -free_gpus(part)); };
  std::stable_sort(parts.begin(), parts.end(), [&](const Spot& a, const Spot& b) {
    if (key(a) != key(b)) return key(a) < key(b);
    return a.node && b.node && before(*a.node, *b.node);
  });
  std::vector<NodeId> nodes;
  for (const Spot& part : parts) {
    for (const NodeId node : nodes_to_pack(part)) nodes.push_back(node);
  }
  return nodes;
}

/// As most(), of what can be put there one after the other: all that is wanted, or else what is needed.
Mix GangSearch::most_packed() {
  if (most_packed_) return *most_packed_;
  Mix most;
  const auto accept = [&](const Mix& mix) { return enough(mix) && mix.total() > most.total(); };
  for (const Mix& goal : {wanted_, least_}) {
    if (!most.empty()) break;
    for (const Spot& top : tightest_first(levels_.required, need_)) {
      if (const auto packed = packer_.pack(nodes_to_pack(top), goal, accept)) most = packed->members;
      if (most == wanted_) break;
    }
  }
  most_packed_ = most;
  return most;
}

std::optional<GangPlan> GangSearch::pack_at(int level, const Mix& target) {
  for (const Spot& spot : tightest_first(level, target)) {
    const auto packed = packer_.pack(nodes_to_pack(spot), target, [&](const Mix& mix) { return mix == target; });
    if (packed) return made_of(packed->seats);
  }
  return std::nullopt;
}

/// Where by sums alone there may be room.
std::vector<GangSearch::Spot> GangSearch::tightest_first(int level, const Mix& target) {
  std::vector<Spot> found = spots(level);
  std::erase_if(found, [&](const Spot& spot) { return !may_hold(spot, target); });
  std::stable_sort(found.begin(), found.end(),
                   [&](const Spot& a, const Spot& b) { return free_gpus(a) < free_gpus(b); });
  return found;
}

// --- where it goes ----------------------------------------------------------------------------------------------

std::optional<GangPlan> GangSearch::plan() {
  for (int tries = 0; tries < kSettleTries; ++tries) {
    const Mix target = most();
    if (target.empty()) return std::nullopt;
    bool gave_up = false;
    for (int level = levels_.preferred; level >= levels_.required && !gave_up; --level) {
      if (const auto shares = spread_at(level, target)) {
        if (std::optional<GangPlan> plan = settle(*shares)) return plan;
        gave_up = true;
      } else if (!exact()) {
        if (std::optional<GangPlan> plan = pack_at(level, target)) return plan;
      }
    }
    if (!gave_up) return std::nullopt;
    measure_tops(false);  // settle() gave up a node
    most_packed_.reset();
  }
  return std::nullopt;
}

std::optional<std::vector<GangSearch::NodeShare>> GangSearch::spread_at(int level, const Mix& target) {
  if (level == context_.domains.node_level() && !rooms_.a_node_holds(target)) return std::nullopt;
  std::vector<Spot> fitting = tightest_first(level, target);
  std::erase_if(fitting, [&](const Spot& spot) {
    const Mixes& mixes = room(spot);
    return std::none_of(mixes.begin(), mixes.end(), [&](const Mix& mix) { return mix.covers(target); });
  });
  if (fitting.empty()) return std::nullopt;
  if (level == context_.domains.node_level()) return on_one_node(std::move(fitting), target);
  const std::int64_t fewest = fitting.size() == 1 ? 0 : fewest_possible(level, target);
  const std::int64_t reserve = budget_.steps / 2;           // for placing
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // by domains used, then tightest
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    const auto found = fitting.size() == 1 ? Cover{} : cover_parts(parts_of(fitting[i].domain), target);
    if (!found) continue;
    order.emplace_back(found->used, i);
    if (found->used <= fewest || budget_.steps <= reserve) break;
  }
  std::sort(order.begin(), order.end());
  for (const auto& [used, i] : order) {
    std::vector<NodeShare> shares;
    if (place(fitting[i].domain, target, shares)) return shares;
  }
  return std::nullopt;
}

std::optional<std::vector<GangSearch::NodeShare>> GangSearch::on_one_node(std::vector<Spot> fitting,
                                                                          const Mix& target) {
  const std::int64_t tightest = free_gpus(fitting.front());
  NodeId best = *fitting.front().node;
  for (const Spot& spot : fitting) {
    if (free_gpus(spot) == tightest && before(*spot.node, best)) best = *spot.node;
  }
  return std::vector<NodeShare>{{best, target}};
}

/// No domain of this level can do with fewer domains of the next, for none of those takes more at once.
std::int64_t GangSearch::fewest_possible(int level, const Mix& target) {
  if (!bound_.empty()) return 0;
  Mix most;
  if (level + 1 == context_.domains.node_level()) {
    most = rooms_.most_on_a_node();
  } else {
    for (const DomainId domain : context_.domains.at_level(level + 1)) {
      const Mix here = rooms_.alone(domain);
      for (std::size_t k = 0; k < kMaxKinds; ++k) most.of[k] = std::max(most.of[k], here.of[k]);
    }
  }
  std::int64_t fewest = 1;
  for (std::size_t k = 0; k < kMaxKinds; ++k) {
    if (most.of[k] > 0) fewest = std::max<std::int64_t>(fewest, (target.of[k] + most.of[k] - 1) / most.of[k]);
  }
  return fewest;
}

std::vector<GangSearch::Spot> GangSearch::parts_of(DomainId id) {
  std::vector<Spot> parts;
  const Domains::Domain& domain = context_.domains.domain(id);
  for (const auto& [name, child] : domain.children) parts.push_back({child, std::nullopt});
  for (const NodeId node : domain.nodes) parts.push_back({id, node});
  std::erase_if(parts, [&](const Spot& part) { return alone(part).empty(); });
  return parts;
}

/// Parts are in the order of preference. Where they are domains, the fullest ones are taken first among equals.
std::optional<Cover> GangSearch::cover_parts(const std::vector<Spot>& spots, const Mix& target) {
  std::vector<Part> parts;
  parts.reserve(spots.size());
  for (const Spot& spot : spots) {
    const auto position = static_cast<std::int64_t>(parts.size());
    parts.push_back({&room(spot), spot.node ? position : free_gpus(spot), in_use(spot)});
  }
  return cover(parts, target, weights_, budget_);
}

bool GangSearch::place(DomainId domain, const Mix& target, std::vector<NodeShare>& shares) {
  std::vector<Spot> parts = parts_of(domain);
  if (!parts.empty() && parts.front().node) {
    std::sort(parts.begin(), parts.end(), [&](const Spot& a, const Spot& b) { return before(*a.node, *b.node); });
  }
  const std::optional<Cover> found = cover_parts(parts, target);
  if (!found) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (found->takes[i].empty()) continue;
    if (parts[i].node) {
      shares.emplace_back(*parts[i].node, found->takes[i]);
    } else if (!place(parts[i].domain, found->takes[i], shares)) {
      return false;
    }
  }
  return true;
}

/// Judged by the largest members that the node has room for.
const GangSearch::Rank& GangSearch::rank(NodeId node) {
  const auto [entry, fresh] = ranks_.try_emplace(context_.cluster.node_state(node).value);
  if (!fresh) return entry->second;
  const NodeTrial trial = rooms_.trial(node);
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const PodShape& shape = node_room_.shape(k);
    if (!trial.fits(shape)) continue;
    const NodeTopology* topology = context_.cluster.topology_of(trial.machine());
    const Candidate candidate{trial.state(), trial.machine(), topology};
    std::int64_t quality = kFullQuality;
    if (shape.gpus > 1) {
      const auto judged = context_.quality.judge(context_.cluster, node, node_room_.first_choice(trial, k));
      quality = judged ? judged->bandwidth_permille : kUnknownQuality;
    }
    entry->second = {quality, context_.policy.score(candidate, shape), context_.policy.tie_score(candidate, shape)};
    break;
  }
  return entry->second;
}

/// Which of two nodes is preferred where both have as much room.
bool GangSearch::before(NodeId a, NodeId b) {
  if (a == b) return false;
  const Rank& ra = rank(a);
  const Rank& rb = rank(b);
  const auto tie = [&](NodeId node) {
    const std::uint64_t order = context_.cluster.node_rank(node);
    return context_.policy.tie_rule() == TieRule::kRandom ? mix64(kinds_.front().member.draw ^ order) : order;
  };
  return std::tuple(rb.quality, rb.score, rb.tie_score, tie(a), a) <
         std::tuple(ra.quality, ra.score, ra.tie_score, tie(b), b);
}

// --- who goes there ---------------------------------------------------------------------------------------------

std::optional<GangPlan> GangSearch::settle(const std::vector<NodeShare>& shares) {
  std::vector<GangPacker::Seat> seats;
  for (const auto& [node, mix] : shares) {
    const auto places = node_room_.arrange(rooms_.trial(node), mix);
    if (!places) {
      rooms_.give_up(node);
      return std::nullopt;
    }
    for (const NodeRoom::Place& place : *places) seats.push_back({node, place.kind, place.devices});
  }
  return made_of(seats);
}

GangPlan GangSearch::made_of(const std::vector<GangPacker::Seat>& seats) const {
  GangPlan plan;
  std::vector<std::size_t> kinds;
  for (const GangPacker::Seat& seat : seats) {
    kinds.push_back(seat.kind);
    plan.members.push_back({0, 0, seat.node, seat.devices});
  }
  name_members(kinds, plan);
  measure_plan(plan);
  return plan;
}

/// Every role of a kind gets its minimum, then what is left in their order; its members in the order of the places.
void GangSearch::name_members(const std::vector<std::size_t>& kinds, GangPlan& plan) const {
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    auto extra = static_cast<std::int64_t>(std::count(kinds.begin(), kinds.end(), k)) - kinds_[k].min;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> names;
    for (const std::uint32_t r : kinds_[k].roles) {
      const GangRole& role = request_.roles[r];
      const std::int64_t more = std::min<std::int64_t>(extra, role.count - role.min);
      extra -= more;
      for (std::uint32_t i = 0; i < role.min + more; ++i) names.emplace_back(r, i);
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] == k) std::tie(plan.members[i].role, plan.members[i].index) = names[next++];
    }
  }
}

void GangSearch::measure_plan(GangPlan& plan) const {
  const Domains& domains = context_.domains;
  std::set<NodeId> nodes(bound_.begin(), bound_.end());
  for (const GangMember& member : plan.members) nodes.insert(member.node);
  plan.level = Domains::kCluster;
  plan.domain = Domains::root();
  for (int level = Domains::kCluster; level <= domains.node_level(); ++level) {
    std::int64_t count = static_cast<std::int64_t>(nodes.size());
    if (level < domains.node_level()) {
      std::set<DomainId> used;
      for (const NodeId node : nodes) used.insert(domains.domain_of(node, level));
      count = static_cast<std::int64_t>(used.size());
    }
    if (count == 1) {
      plan.level = level;
      plan.domain = domains.domain_of(*nodes.begin(), level);
    } else {
      plan.domains.push_back(count);
    }
  }
}

}  // namespace mortise::placement
