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
/// Domains that are looked at for the best of those in which the gang does not fit, the most promising ones.
constexpr std::size_t kTopsInText = 32;

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
      node_room_(context.cluster, context.policy, members_of(kinds_)),
      rooms_(context.cluster, context.domains, node_room_,
             kind_masks(kinds_, view == GangRooms::View::kNow ? &GangRole::allowed : &GangRole::eligible,
                        context.cluster.node_count()),
             weights_, wanted_, view) {
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
  return std::any_of(tops.begin(), tops.end(),
                     [&](const Spot& top) { return may_hold(top, least_) && best_of(room(top)) != nullptr; });
}

// --- where it goes ----------------------------------------------------------------------------------------------

std::optional<GangPlan> GangSearch::plan() {
  for (int tries = 0; tries < kSettleTries; ++tries) {
    Mix target;
    for (const Spot& top : spots(levels_.required)) {
      const Mix* best = may_hold(top, least_) ? best_of(room(top)) : nullptr;
      if (best == nullptr) continue;
      if (std::tuple(best->total(), std::cref(*best)) > std::tuple(target.total(), std::cref(target))) target = *best;
    }
    if (target.empty()) return std::nullopt;
    const std::optional<std::vector<NodeShare>> shares = spread(target);
    if (!shares) return std::nullopt;
    if (std::optional<GangPlan> plan = settle(*shares)) return plan;
    measure_tops(false);  // settle() gave up a node
  }
  return std::nullopt;
}

std::optional<std::vector<GangSearch::NodeShare>> GangSearch::spread(const Mix& target) {
  for (int level = levels_.preferred; level >= levels_.required; --level) {
    if (auto found = spread_at(level, target)) return found;
  }
  return std::nullopt;
}

std::optional<std::vector<GangSearch::NodeShare>> GangSearch::spread_at(int level, const Mix& target) {
  if (level == context_.domains.node_level() && !rooms_.a_node_holds(target)) return std::nullopt;
  std::vector<Spot> fitting = spots(level);
  std::erase_if(fitting, [&](const Spot& spot) {
    if (!may_hold(spot, target)) return true;
    const Mixes& mixes = room(spot);
    return std::none_of(mixes.begin(), mixes.end(), [&](const Mix& mix) { return mix.covers(target); });
  });
  if (fitting.empty()) return std::nullopt;
  std::stable_sort(fitting.begin(), fitting.end(),
                   [&](const Spot& a, const Spot& b) { return free_gpus(a) < free_gpus(b); });
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
    const bool in_use = spot.node ? std::find(bound_.begin(), bound_.end(), *spot.node) != bound_.end()
                                  : bound_domains_.contains(spot.domain);
    const auto position = static_cast<std::int64_t>(parts.size());
    parts.push_back({&room(spot), spot.node ? position : free_gpus(spot), in_use});
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
  GangPlan plan;
  std::vector<std::size_t> kinds;
  for (const auto& [node, mix] : shares) {
    const auto places = node_room_.arrange(rooms_.trial(node), mix);
    if (!places) {
      rooms_.give_up(node);
      return std::nullopt;
    }
    for (const NodeRoom::Place& place : *places) {
      kinds.push_back(place.kind);
      plan.members.push_back({0, 0, node, place.devices});
    }
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

// --- why not ----------------------------------------------------------------------------------------------------

std::string GangSearch::place_text() const {
  if (levels_.required == Domains::kCluster) return "";
  return " in one " + std::string(context_.domains.level_name(levels_.required));
}

std::string GangSearch::best_text(const Spot& best, std::int64_t has) const {
  if (levels_.required == Domains::kCluster) return "there is room for " + std::to_string(has);
  const std::string name = best.node ? context_.cluster.node_name(*best.node) : context_.domains.path(best.domain);
  const std::string domain = std::string(context_.domains.level_name(levels_.required)) + " " + name;
  const std::string room = " has room for " + std::to_string(has);
  return bound_.empty() ? "the best " + domain + room : domain + ", where members of it are," + room;
}

std::string GangSearch::shortfall_of_kind(std::size_t kind, const std::vector<Spot>& tops) {
  const Spot* best = nullptr;
  std::int64_t has = -1;
  for (const Spot& top : tops) {
    const std::int64_t here = alone(top).of[kind];
    if (here > has) best = &top;
    has = std::max(has, here);
  }
  if (has >= kinds_[kind].min) return "";
  const GangRole& role = *kinds_[kind].like;
  const std::string who = kinds_.size() > 1 && !role.name.empty() ? " for role '" + role.name + "'" : "";
  return "needs " + count_text(kinds_[kind].min, role.pod) + who + place_text() + "; " + best_text(*best, has);
}

/// Each kind alone fits.
std::string GangSearch::shortfall_together(std::vector<Spot> tops) {
  const Spot* best = nullptr;
  std::int64_t has = -1;
  const std::int64_t need = std::max<std::int64_t>({least_.total(), request_.min, 1});
  std::stable_sort(tops.begin(), tops.end(),
                   [&](const Spot& a, const Spot& b) { return alone(a).total() > alone(b).total(); });
  tops.resize(std::min(tops.size(), kTopsInText));
  for (const Spot& top : tops) {
    for (const Mix& mix : room(top)) {
      const std::int64_t here =
          std::min(need, request_.min > 0 && mix.covers(least_) ? mix.total() : smaller(mix, least_).total());
      if (here > has) best = &top;
      has = std::max(has, here);
    }
  }
  std::string what;
  for (const GangKind& kind : kinds_) {
    if (kind.min > 0) what += (what.empty() ? "" : " and ") + count_text(kind.min, kind.like->pod);
  }
  if (request_.min > least_.total()) what = std::to_string(need) + " members";
  return "needs " + what + place_text() + "; " + best_text(*best, has) + " of these " + std::to_string(need);
}

std::string GangSearch::shortfall() {
  measure_tops(false);
  const std::vector<Spot> tops = spots(levels_.required);
  if (tops.empty()) return "there is no node";
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (std::string text = shortfall_of_kind(k, tops); !text.empty()) return text;
  }
  return shortfall_together(tops);
}

}  // namespace mortise::placement
