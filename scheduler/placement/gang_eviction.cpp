#include "scheduler/placement/gang_eviction.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "scheduler/placement/node_trial.h"

namespace mortise::placement {
namespace {

using Victims = std::vector<std::size_t>;

/// Pods that are taken at first before it is tried whether the gang fits; twice as many each time.
constexpr std::size_t kFirstTaken = 16;
/// Gangs with which other orders are tried.
constexpr std::size_t kOtherOrders = 8;

class GangEvictionSearch {
 public:
  GangEvictionSearch(ClusterState& cluster, GangPlanner& planner, const GangEvictionQuestion& question,
                     GangEvictionBudget& budget)
      : cluster_(cluster), planner_(planner), question_(question), budget_(budget) {}

  std::optional<GangEviction> run();

 private:
  NodeId node_of(std::size_t pod) const { return cluster_.allocation(question_.pods[pod].allocation)->node; }
  void collect();
  void put_violating_last();
  Victims first(std::size_t count) const;
  std::optional<GangPlan> plan_without(const Victims& victims);
  bool seed();
  void try_other_orders();
  void keep_if_cheaper(Victims victims, GangPlan plan);
  void drop_useless(Victims& victims, const std::set<NodeId>& used) const;
  void spare(Victims& victims, const GangPlan& plan);
  std::optional<Victims> without(const Victims& victims, std::size_t pod) const;
  bool holds(NodeId node, const Victims& victims, const GangPlan& plan) const;
  EvictionCost cost_of(const Victims& victims, const std::set<NodeId>& used) const;
  void extend(std::size_t next);

  ClusterState& cluster_;
  GangPlanner& planner_;
  const GangEvictionQuestion& question_;
  GangEvictionBudget& budget_;
  Victims pods_;  // that may go, the cheapest first
  Victims chosen_;
  std::optional<GangEviction> best_;
};

std::set<NodeId> nodes_of(const GangPlan& plan) {
  std::set<NodeId> nodes;
  for (const GangMember& member : plan.members) nodes.insert(member.node);
  return nodes;
}

void GangEvictionSearch::collect() {
  for (std::size_t i = 0; i < question_.pods.size(); ++i) {
    const EvictablePod& pod = question_.pods[i];
    if (pod.priority < question_.priority && cluster_.allocation(pod.allocation) != nullptr) pods_.push_back(i);
  }
  std::sort(pods_.begin(), pods_.end(), [&](std::size_t a, std::size_t b) {
    const EvictablePod& x = question_.pods[a];
    const EvictablePod& y = question_.pods[b];
    // At one priority gangs are taken after pods that are for themselves.
    if (x.priority == y.priority && x.gang.has_value() != y.gang.has_value()) return !x.gang.has_value();
    return more_important(y, x);
  });
  put_violating_last();
}

/// A gang that goes as a whole may be worth it, or not, in ways that the order does not show: also with each gang first
/// among those of its priority, and without it.
void GangEvictionSearch::try_other_orders() {
  const Victims usual = pods_;
  for (std::uint32_t g = 0; g < std::min(question_.gangs.size(), kOtherOrders) && budget_.steps > 0; ++g) {
    const auto of_gang = [&](std::size_t pod) { return question_.pods[pod].gang == g; };
    const auto one = std::find_if(usual.begin(), usual.end(), of_gang);
    if (one == usual.end()) continue;
    const std::int32_t priority = question_.pods[*one].priority;
    const auto same = std::find_if(pods_.begin(), pods_.end(),
                                   [&](std::size_t pod) { return question_.pods[pod].priority >= priority; });
    std::stable_partition(same, pods_.end(), of_gang);
    put_violating_last();
    (void)seed();
    pods_ = usual;
    std::erase_if(pods_, of_gang);
    if (!pods_.empty()) (void)seed();
    pods_ = usual;
  }
}

/// Those that their budgets do not allow if the cheaper ones go.
void GangEvictionSearch::put_violating_last() {
  std::vector<std::int64_t> allowed = question_.budgets;
  std::set<std::size_t> violating;
  for (const std::size_t pod : pods_) {
    for (const std::uint32_t budget : question_.pods[pod].budgets) {
      if (--allowed[budget] < 0) violating.insert(pod);
    }
  }
  std::stable_partition(pods_.begin(), pods_.end(), [&](std::size_t pod) { return !violating.contains(pod); });
}

Victims GangEvictionSearch::first(std::size_t count) const {
  return with_their_gangs(question_, {pods_.begin(), pods_.begin() + static_cast<std::ptrdiff_t>(count)});
}

std::optional<GangPlan> GangEvictionSearch::plan_without(const Victims& victims) {
  budget_.steps -= kStepsPerPlan + 2 * static_cast<std::int64_t>(cluster_.node_count());
  const ClusterState::Mark mark = cluster_.mark();
  for (const std::size_t victim : victims) (void)cluster_.release(question_.pods[victim].allocation);
  std::optional<GangPlan> plan = planner_.try_plan(*question_.gang);
  cluster_.undo(mark);
  return plan;
}

/// A first solution: as few of the cheapest as there is a need for. Freeing more is taken to never hurt.
bool GangEvictionSearch::seed() {
  std::size_t enough = std::min(kFirstTaken, pods_.size());
  std::size_t few = 0;
  std::optional<GangPlan> found = plan_without(first(enough));
  while (!found && enough < pods_.size()) {
    few = std::exchange(enough, std::min(2 * enough, pods_.size()));
    found = plan_without(first(enough));
  }
  if (!found) return false;
  while (few + 1 < enough) {
    const std::size_t middle = few + (enough - few) / 2;
    if (std::optional<GangPlan> plan = plan_without(first(middle))) {
      enough = middle;
      found = std::move(plan);
    } else {
      few = middle;
    }
  }
  keep_if_cheaper(first(enough), *std::move(found));
  return true;
}

void GangEvictionSearch::keep_if_cheaper(Victims victims, GangPlan plan) {
  const std::set<NodeId> used = nodes_of(plan);
  drop_useless(victims, used);
  spare(victims, plan);
  const EvictionCost cost = cost_of(victims, used);
  if (!best_ || cost < best_->cost) best_ = GangEviction{std::move(victims), std::move(plan), cost};
}

/// Those on nodes that nobody goes to, but for members that must go with the rest of their gang.
void GangEvictionSearch::drop_useless(Victims& victims, const std::set<NodeId>& used) const {
  std::erase_if(victims, [&](std::size_t pod) { return !used.contains(node_of(pod)); });
  victims = with_their_gangs(question_, std::move(victims));
}

/// The victims without this one; if it has to go with its gang, without all of that. Nothing: it is not one of them.
std::optional<Victims> GangEvictionSearch::without(const Victims& victims, std::size_t pod) const {
  if (!std::binary_search(victims.begin(), victims.end(), pod)) return std::nullopt;
  Victims fewer = victims;
  std::erase(fewer, pod);
  const auto gang = question_.pods[pod].gang;
  if (gang && with_their_gangs(question_, fewer) != fewer) {
    std::erase_if(fewer, [&](std::size_t other) { return question_.pods[other].gang == gang; });
  }
  return fewer;
}

/// Spares who is not needed for the plan, the most important first; then tries for gangs that go whole whether a part
/// that they can spare is enough.
void GangEvictionSearch::spare(Victims& victims, const GangPlan& plan) {
  const std::set<NodeId> used = nodes_of(plan);
  const auto enough = [&](const Victims& fewer) {
    Victims spared;
    std::set_difference(victims.begin(), victims.end(), fewer.begin(), fewer.end(), std::back_inserter(spared));
    std::set<NodeId> changed;
    for (const std::size_t pod : spared) {
      if (used.contains(node_of(pod))) changed.insert(node_of(pod));
    }
    return std::all_of(changed.begin(), changed.end(), [&](NodeId node) { return holds(node, fewer, plan); });
  };
  for (std::size_t i = pods_.size(); i-- > 0;) {
    auto fewer = without(victims, pods_[i]);
    if (fewer && enough(*fewer)) victims = *std::move(fewer);
  }
  for (std::uint32_t g = 0; g < question_.gangs.size(); ++g) {
    if (question_.gangs[g].spare <= 0) continue;
    Victims others = victims;
    std::erase_if(others, [&](std::size_t pod) { return question_.pods[pod].gang == g; });
    for (const std::size_t pod : pods_) {  // the cheapest of its members that are of use
      if (question_.pods[pod].gang != g || !used.contains(node_of(pod))) continue;
      if (others.size() >= victims.size()) break;
      Victims more = others;
      more.insert(std::lower_bound(more.begin(), more.end(), pod), pod);
      if (with_their_gangs(question_, more) != more) break;
      others = std::move(more);
      if (enough(others)) {
        victims = others;
        break;
      }
    }
  }
}

/// Whether the node takes those members that the plan has on it when only these have gone.
bool GangEvictionSearch::holds(NodeId node, const Victims& victims, const GangPlan& plan) const {
  const ClusterState::Mark mark = cluster_.mark();
  for (const std::size_t victim : victims) {
    if (node_of(victim) == node) (void)cluster_.release(question_.pods[victim].allocation);
  }
  NodeTrial trial(cluster_, node);
  cluster_.undo(mark);
  for (const GangMember& member : plan.members) {
    if (member.node != node) continue;
    const ShapeId id = cluster_.intern(question_.gang->roles[member.role].pod);
    const PodShape shape = cluster_.shapes().shape(id);
    if (!trial.fits(shape)) return false;
    DeviceSet devices;
    if (shape.is_share()) {
      const auto free = trial.state().free_devices();
      const auto found = std::find_if(free.begin(), free.end(), [&](int left) { return left >= shape.gpu_milli; });
      devices.insert(static_cast<int>(found - free.begin()));
    } else {
      devices = cluster_.choose_devices(trial.state(), shape, std::nullopt);
    }
    trial.take(id, devices);
  }
  return true;
}

EvictionCost GangEvictionSearch::cost_of(const Victims& victims, const std::set<NodeId>& used) const {
  EvictionCost cost = eviction_cost(cluster_, question_, victims);
  cost.elsewhere =
      std::count_if(victims.begin(), victims.end(), [&](std::size_t pod) { return !used.contains(node_of(pod)); });
  return cost;
}

/// Tries every set that has `chosen_` and some of the pods from `next` on, but for those that cannot be cheaper than
/// the best known.
void GangEvictionSearch::extend(std::size_t next) {
  if (next >= pods_.size()) return;
  Victims all = chosen_;
  all.insert(all.end(), pods_.begin() + static_cast<std::ptrdiff_t>(next), pods_.end());
  if (budget_.steps <= 0 || !plan_without(with_their_gangs(question_, all))) return;
  for (std::size_t i = next; i < pods_.size() && budget_.steps > 0; ++i) {
    chosen_.push_back(pods_[i]);
    Victims victims = with_their_gangs(question_, chosen_);
    if (eviction_cost(cluster_, question_, victims) < best_->cost) {
      if (std::optional<GangPlan> plan = plan_without(victims)) {
        keep_if_cheaper(std::move(victims), *std::move(plan));
      } else {
        extend(i + 1);
      }
    }
    chosen_.pop_back();
  }
}

std::optional<GangEviction> GangEvictionSearch::run() {
  if (std::optional<GangPlan> plan = plan_without({})) return GangEviction{{}, *std::move(plan), {}, true};
  collect();
  if (pods_.empty() || !seed()) return std::nullopt;
  try_other_orders();
  if (pods_.size() <= static_cast<std::size_t>(kExactVictims)) extend(0);
  best_->cheapest = pods_.size() <= static_cast<std::size_t>(kExactVictims) && budget_.steps > 0;
  std::sort(best_->victims.begin(), best_->victims.end(),
            [&](std::size_t a, std::size_t b) { return more_important(question_.pods[a], question_.pods[b]); });
  return best_;
}

}  // namespace

std::optional<GangEviction> cheapest_gang_eviction(ClusterState& cluster, GangPlanner& planner,
                                                   const GangEvictionQuestion& question, GangEvictionBudget& budget) {
  return GangEvictionSearch(cluster, planner, question, budget).run();
}

}  // namespace mortise::placement
