#include "scheduler/placement/preemption.h"

#include <algorithm>
#include <tuple>

#include "scheduler/placement/feasibility.h"

namespace mortise::placement {
namespace {

constexpr std::int64_t kMaxSets = std::int64_t{1} << kExactVictims;
constexpr std::int64_t kLowestPriority = std::numeric_limits<std::int32_t>::min();

/// The node's counts without one of its pods (sign 1) or with it again (-1).
void count(const Allocation& held, const PodShape& shape, int sign, NodeState& state) {
  state.pods_free += sign;
  state.cpu_free += sign * shape.cpu;
  state.memory_free += sign * shape.memory;
  held.devices.for_each([&](int device) {
    std::int16_t& left = state.free[static_cast<std::size_t>(device)];
    left = static_cast<std::int16_t>(left + sign * shape.gpu_milli);
  });
}

std::int64_t count_violations(const VictimPool& pool, std::vector<std::size_t> victims) {
  if (pool.budgets.empty()) return 0;
  std::sort(victims.begin(), victims.end(),
            [&](std::size_t a, std::size_t b) { return more_important(pool.pods[a], pool.pods[b]); });
  std::vector<std::int64_t> allowed = pool.budgets;
  std::int64_t violations = 0;
  for (const std::size_t victim : victims) {
    bool violates = false;
    for (const std::uint32_t budget : pool.pods[victim].budgets) violates |= --allowed[budget] < 0;
    violations += violates ? 1 : 0;
  }
  return violations;
}

/// Looks for the cheapest set, cheap pods first.
class Search {
 public:
  Search(ClusterState& cluster, const EvictionQuestion& question, EvictionBudget& budget)
      : cluster_(cluster),
        question_(question),
        budget_(budget),
        shape_(cluster.shapes().shape(question.pod)),
        machine_(cluster.machine_of(question.node)) {}

  std::optional<Eviction> run();

 private:
  const Allocation& held(std::size_t pod) const { return *cluster_.allocation(question_.pods[pod].allocation); }
  bool is_here(std::size_t pod) const { return held(pod).node == question_.node; }
  void free_up(std::size_t pod, int sign, NodeState& counts) const {
    if (is_here(pod)) count(held(pod), cluster_.shapes().shape(held(pod).shape), sign, counts);
  }
  bool matters(std::size_t pod) const;
  void collect();
  bool enough(const NodeState& counts) const { return feasibility(counts, machine_, shape_) == Reason::kNone; }
  NodeState without(const std::vector<std::size_t>& pods) const;
  Reason reason_without(const std::vector<std::size_t>& victims);
  bool sufficient(const std::vector<std::size_t>& victims, const NodeState& counts);
  std::optional<std::vector<std::size_t>> spare(const std::vector<std::size_t>& taken, std::size_t pod) const;
  EvictionCost cost_of(const std::vector<std::size_t>& victims) const;
  bool spent() const { return sets_ >= kMaxSets || budget_.looks <= 0; }
  void keep_if_cheaper(const std::vector<std::size_t>& victims);
  void seed();
  void extend(const NodeState& counts, NodeState roomiest, std::size_t next);

  ClusterState& cluster_;
  const EvictionQuestion& question_;
  EvictionBudget& budget_;
  const PodShape shape_;
  const Machine machine_;
  std::vector<std::size_t> pods_;  // that may be taken; the cheapest first
  std::vector<std::size_t> chosen_;
  std::optional<Eviction> best_;
  std::int64_t sets_ = 0;
};

/// Taking a pod without GPUs or anything pinned off a node that has CPU, memory and room for a pod changes no answer.
bool Search::matters(std::size_t pod) const {
  const Allocation& allocation = held(pod);
  const NodeState& now = cluster_.state_of(question_.node);
  return !allocation.devices.empty() || allocation.holds != HoldsId{} || now.cpu_free < shape_.cpu ||
         now.memory_free < shape_.memory || now.pods_free < 1;
}

void Search::collect() {
  for (std::size_t i = 0; i < question_.pods.size(); ++i) {
    const EvictablePod& pod = question_.pods[i];
    const Allocation* allocation = cluster_.allocation(pod.allocation);
    if (pod.priority >= question_.priority || allocation == nullptr || allocation->node != question_.node) continue;
    if (matters(i)) pods_.push_back(i);
  }
  std::sort(pods_.begin(), pods_.end(),
            [&](std::size_t a, std::size_t b) { return more_important(question_.pods[b], question_.pods[a]); });
}

NodeState Search::without(const std::vector<std::size_t>& pods) const {
  NodeState counts = cluster_.state_of(question_.node);
  for (const std::size_t pod : pods) free_up(pod, 1, counts);
  return counts;
}

Reason Search::reason_without(const std::vector<std::size_t>& victims) {
  budget_.looks -= kLooksPerTrial;
  const ClusterState::Mark mark = cluster_.mark();
  for (const std::size_t victim : victims) (void)cluster_.release(question_.pods[victim].allocation);
  const Reason reason = node_reason(cluster_, question_.node, question_.pod);
  cluster_.undo(mark);
  return reason;
}

bool Search::sufficient(const std::vector<std::size_t>& victims, const NodeState& counts) {
  return enough(counts) && reason_without(victims) == Reason::kNone;
}

void Search::keep_if_cheaper(const std::vector<std::size_t>& victims) {
  const EvictionCost cost = cost_of(victims);
  if (!best_ || cost < best_->cost) best_ = Eviction{victims, cost};
}

EvictionCost Search::cost_of(const std::vector<std::size_t>& victims) const {
  EvictionCost cost = eviction_cost(cluster_, question_, victims);
  cost.elsewhere = std::count_if(victims.begin(), victims.end(), [&](std::size_t pod) { return !is_here(pod); });
  return cost;
}

/// Those taken without this one; if it has to go with its gang, without all of that. Nothing: it is not among them.
std::optional<std::vector<std::size_t>> Search::spare(const std::vector<std::size_t>& taken, std::size_t pod) const {
  if (std::find(taken.begin(), taken.end(), pod) == taken.end()) return std::nullopt;
  std::vector<std::size_t> fewer = taken;
  std::erase(fewer, pod);
  const auto gang = question_.pods[pod].gang;
  if (gang && with_their_gangs(question_, fewer) != fewer) {
    std::erase_if(fewer, [&](std::size_t other) { return question_.pods[other].gang == gang; });
  }
  return fewer;
}

/// A first solution, so that a search that is cut short has one: the cheapest pods until they suffice, then each of
/// them spared that can be, the most important first.
void Search::seed() {
  std::vector<std::size_t> taken;
  bool found = false;
  for (std::size_t i = 0; i < pods_.size() && !found; ++i) {
    if (std::find(taken.begin(), taken.end(), pods_[i]) != taken.end()) continue;  // with its gang
    taken.push_back(pods_[i]);
    taken = with_their_gangs(question_, std::move(taken));
    found = sufficient(taken, without(taken));
  }
  if (!found) return;
  for (std::size_t i = pods_.size(); i-- > 0;) {
    auto fewer = spare(taken, pods_[i]);
    if (fewer && sufficient(*fewer, without(*fewer))) taken = *std::move(fewer);
  }
  keep_if_cheaper(taken);
}

/// Tries every set that has `chosen_` and some of the pods from `next` on, but for those that cannot be cheaper than
/// the best known or that free too little. Freeing more need not help where the plugin then prefers other GPUs, so a
/// set that does not suffice by topology says nothing about larger ones; one that does is cheaper than they are.
/// `counts` are those without `chosen_`, `roomiest` those without all the others as well.
void Search::extend(const NodeState& counts, NodeState roomiest, std::size_t next) {
  for (std::size_t i = next; i < pods_.size() && enough(roomiest) && !spent(); ++i) {
    ++sets_;
    --budget_.looks;
    chosen_.push_back(pods_[i]);
    const std::vector<std::size_t> all = with_their_gangs(question_, chosen_);
    if (!best_ || cost_of(all) < best_->cost) {
      NodeState more = counts;
      free_up(pods_[i], 1, more);
      if (sufficient(all, all.size() == chosen_.size() ? more : without(all))) {
        keep_if_cheaper(all);
      } else {
        extend(more, roomiest, i + 1);
      }
    }
    chosen_.pop_back();
    free_up(pods_[i], -1, roomiest);
  }
}

std::optional<Eviction> Search::run() {
  if (node_reason(cluster_, question_.node, question_.pod) == Reason::kNone) return Eviction{};
  collect();
  const NodeState roomiest = without(pods_);
  // Where even the empty node would not do (kTopologyNever), one with some pods left may: the plugin has less choice.
  if (!enough(roomiest) || reason_without(pods_) == Reason::kTopologyUnknown) return std::nullopt;
  seed();
  const NodeState now = cluster_.state_of(question_.node);  // a copy: trials make the table of states grow
  extend(now, roomiest, 0);
  if (!best_) return std::nullopt;
  best_->cheapest = !spent();
  std::sort(best_->victims.begin(), best_->victims.end(),
            [&](std::size_t a, std::size_t b) { return more_important(question_.pods[a], question_.pods[b]); });
  return best_;
}

}  // namespace

bool more_important(const EvictablePod& a, const EvictablePod& b) {
  return std::tuple(-std::int64_t{a.priority}, -a.running, a.allocation) <
         std::tuple(-std::int64_t{b.priority}, -b.running, b.allocation);
}

std::vector<std::size_t> with_their_gangs(const VictimPool& pool, std::vector<std::size_t> victims) {
  std::sort(victims.begin(), victims.end());
  if (pool.gangs.empty()) return victims;
  std::vector<EvictableGang> left = pool.gangs;
  std::vector<bool> whole(pool.gangs.size(), false);
  for (const std::size_t victim : victims) {
    const EvictablePod& pod = pool.pods[victim];
    if (!pod.gang) continue;
    EvictableGang& gang = left[*pod.gang];
    const bool role_counts = pod.role < gang.spare_of_role.size();
    if (--gang.spare < 0 || (role_counts && --gang.spare_of_role[pod.role] < 0)) whole[*pod.gang] = true;
  }
  if (std::find(whole.begin(), whole.end(), true) == whole.end()) return victims;
  std::erase_if(victims, [&](std::size_t victim) {
    const auto gang = pool.pods[victim].gang;
    return gang && whole[*gang];
  });
  for (std::size_t i = 0; i < pool.pods.size(); ++i) {
    if (pool.pods[i].gang && whole[*pool.pods[i].gang]) victims.push_back(i);
  }
  std::sort(victims.begin(), victims.end());
  return victims;
}

Reason node_reason(const ClusterState& cluster, NodeId node, ShapeId pod) {
  const NodeState& state = cluster.state_of(node);
  const PodShape& shape = cluster.shapes().shape(pod);
  const Reason reason = feasibility(state, cluster.machine(state.machine), shape);
  return reason == Reason::kNone ? cluster.topology_reason(state, shape) : reason;
}

EvictionCost eviction_cost(const ClusterState& cluster, const VictimPool& pool, std::span<const std::size_t> victims) {
  EvictionCost cost;
  for (const std::size_t victim : victims) {
    const EvictablePod& pod = pool.pods[victim];
    const Allocation& held = *cluster.allocation(pod.allocation);
    cost.highest_priority = std::max(cost.highest_priority, std::int64_t{pod.priority});
    cost.priority_sum += pod.priority - kLowestPriority;
    cost.milli_gpu_seconds += held.devices.size() * cluster.shapes().shape(held.shape).gpu_milli *
                              (std::max<Nanoseconds>(pod.running, 0) / kSecond);
    cost.not_proposed += pod.proposed ? 0 : 1;
    cost.pods += 1;
  }
  cost.pdb_violations = count_violations(pool, {victims.begin(), victims.end()});
  return cost;
}

std::optional<Eviction> cheapest_eviction(ClusterState& cluster, const EvictionQuestion& question,
                                          EvictionBudget& budget) {
  return Search(cluster, question, budget).run();
}

}  // namespace mortise::placement
