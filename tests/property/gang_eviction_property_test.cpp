// Who is named to go for a gang, against every set of pods there is, on small clusters: whether there is one never
// differs, and none violates fewer budgets or spares more important pods. What fits is reckoned here from counts of
// GPUs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/placement/gang_eviction.h"
#include "tests/support/for_all.h"
#include "tests/support/gang_cluster.h"

namespace mortise::property {
namespace {

using namespace placement;

int below(int bound) {
  return *rc::gen::resize(100, rc::gen::inRange(0, bound));  // the full range, however small the case
}

struct Held {
  std::size_t node = 0;
  int gpus = 0;
  int priority = 0;
  int gang = -1;
  int role = 0;
  int budget = -1;
};

class Bed {
 public:
  Bed() : cluster_(std::vector<TopologyLevel>{{"rack", "rack"}}) {
    const int nodes = 2 + below(3);
    for (int n = 0; n < nodes; ++n) {
      gpus_.push_back(1 + below(4));
      racks_.push_back(below(2));
      ids_.push_back(
          cluster_.node("n" + std::to_string(n), "r" + std::to_string(racks_.back()), gpus_.back(), gpus_.back()));
    }
    make_gangs();
    free_ = gpus_;
    for (int i = 0, pods = 2 + below(7); i < pods; ++i) hold();
    make_request();
  }

  void ask() {
    const auto best = try_all();
    // A search that is cut short names somebody, too, if not the cheapest.
    const auto any = set_found(0);
    RC_ASSERT(any.has_value() == best.has_value());
    const auto found = set_found(std::int64_t{1} << 40);
    RC_ASSERT(found.has_value() == best.has_value());
    if (!found) {
      ++seen.none;
      return;
    }
    const std::uint32_t set = *found;
    RC_ASSERT(cost(set) == *best);
    if (set != 0) ++seen.some;
    for (std::size_t g = 0; g < gangs_.size(); ++g) seen.whole_gangs += evicted_of(set, static_cast<int>(g)) > 1;
  }

  struct Seen {
    int none = 0;
    int some = 0;
    int whole_gangs = 0;
  };
  static Seen seen;

 private:
  /// The pods that the search names, as bits, after a look at what holds for any answer.
  std::optional<std::uint32_t> set_found(std::int64_t steps) {
    question_.gang = &request_;
    GangEvictionBudget budget{steps};
    std::unique_ptr<Policy> policy = *make_policy("best-fit", TypicalPods());
    GangPlanner planner(cluster_.cluster, cluster_.domains, *policy, 1);
    const std::int64_t used = cluster_.cluster.totals().gpu_used;
    const auto found = cheapest_gang_eviction(cluster_.cluster, planner, question_, budget);
    RC_ASSERT(cluster_.cluster.check().ok());
    RC_ASSERT(cluster_.cluster.totals().gpu_used == used);
    if (!found) return std::nullopt;
    std::uint32_t set = 0;
    for (const std::size_t victim : found->victims) set |= 1U << victim;
    RC_ASSERT(allowed(set));
    RC_ASSERT(fits(set));
    RC_ASSERT(plan_holds(set, found->plan));
    return set;
  }

  struct Gang {
    int priority = 0;
    int minimum = 0;
    int lead_minimum = 0;  // of role 0
    int members = 0;
    int leads = 0;
  };

  void make_gangs() {
    for (int g = below(3); g > 0; --g) gangs_.push_back({below(3), 1 + below(3), below(2), 0, 0});
    for (int b = below(3); b > 0; --b) question_.budgets.push_back(below(2));
  }

  void hold() {
    Held pod;
    pod.node = static_cast<std::size_t>(below(static_cast<int>(gpus_.size())));
    pod.gpus = 1 + below(2);
    pod.priority = below(4);
    if (free_[pod.node] < pod.gpus) return;
    if (!gangs_.empty() && below(2) == 0) {
      pod.gang = below(static_cast<int>(gangs_.size()));
      Gang& gang = gangs_[static_cast<std::size_t>(pod.gang)];
      pod.priority = gang.priority;
      pod.role = below(2);
      ++gang.members;
      gang.leads += pod.role == 0;
    }
    DeviceSet devices;
    const NodeId id = ids_[pod.node];
    for (int d = 0; devices.size() < pod.gpus; ++d) {
      if (cluster_.cluster.state_of(id).free[static_cast<std::size_t>(d)] == kWholeGpu) devices.insert(d);
    }
    const auto applied = cluster_.cluster.apply(cluster_.cluster.intern(GangCluster::pod(pod.gpus)), id, devices);
    RC_ASSERT(applied.ok());
    free_[pod.node] -= pod.gpus;
    EvictablePod evictable{*applied, pod.priority, below(3) * 3600 * kSecond, false, {}};
    if (!question_.budgets.empty() && below(2) == 0) {
      pod.budget = below(static_cast<int>(question_.budgets.size()));
      evictable.budgets.push_back(static_cast<std::uint32_t>(pod.budget));
    }
    if (pod.gang >= 0) evictable.gang = static_cast<std::uint32_t>(pod.gang);
    evictable.role = static_cast<std::uint32_t>(pod.role);
    question_.pods.push_back(evictable);
    pods_.push_back(pod);
  }

  void make_request() {
    for (const Gang& gang : gangs_) {
      question_.gangs.push_back({gang.members - gang.minimum, {gang.leads - gang.lead_minimum}});
    }
    question_.priority = 1 + below(4);
    request_.roles.push_back(GangCluster::role("a", 1 + below(3), GangCluster::pod(1 + below(3))));
    if (below(3) == 0) request_.roles.push_back(GangCluster::role("b", 1, GangCluster::pod(1 + below(2))));
    if (below(3) == 0) request_.required_level = "rack";
  }

  int evicted_of(std::uint32_t set, int gang, int role = -1) const {
    int count = 0;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      count += (set >> i & 1U) != 0 && pods_[i].gang == gang && (role < 0 || pods_[i].role == role);
    }
    return count;
  }

  /// Nobody of equal or higher priority, and of each gang all or no more than it can spare.
  bool allowed(std::uint32_t set) const {
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      if ((set >> i & 1U) != 0 && pods_[i].priority >= question_.priority) return false;
    }
    for (std::size_t g = 0; g < gangs_.size(); ++g) {
      const Gang& gang = gangs_[g];
      const int evicted = evicted_of(set, static_cast<int>(g));
      const int leads = evicted_of(set, static_cast<int>(g), 0);
      if (evicted == 0 || evicted == gang.members) continue;
      if (gang.members - evicted < gang.minimum) return false;
      if (leads > 0 && gang.leads - leads < gang.lead_minimum) return false;
    }
    return true;
  }

  std::vector<int> free_without(std::uint32_t set) const {
    std::vector<int> free = free_;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      if ((set >> i & 1U) != 0) free[pods_[i].node] += pods_[i].gpus;
    }
    return free;
  }

  bool fits(std::uint32_t set) const {
    std::vector<int> sizes;
    for (const GangRole& role : request_.roles)
      sizes.insert(sizes.end(), static_cast<std::size_t>(role.count), role.pod.gpus);
    std::vector<int> free = free_without(set);
    if (request_.required_level.empty()) return place(sizes, 0, free, -1);
    return place(sizes, 0, free, 0) || place(sizes, 0, free, 1);
  }

  bool place(const std::vector<int>& sizes, std::size_t next, std::vector<int>& free, int rack) const {
    if (next == sizes.size()) return true;
    for (std::size_t n = 0; n < free.size(); ++n) {
      if (free[n] < sizes[next] || (rack >= 0 && racks_[n] != rack)) continue;
      free[n] -= sizes[next];
      const bool done = place(sizes, next + 1, free, rack);
      free[n] += sizes[next];
      if (done) return true;
    }
    return false;
  }

  bool plan_holds(std::uint32_t set, const GangPlan& plan) const {
    std::vector<int> free = free_without(set);
    std::size_t wanted = 0;
    for (const GangRole& role : request_.roles) wanted += static_cast<std::size_t>(role.count);
    std::set<int> racks;
    for (const GangMember& member : plan.members) {
      const auto n = static_cast<std::size_t>(std::find(ids_.begin(), ids_.end(), member.node) - ids_.begin());
      free[n] -= request_.roles[member.role].pod.gpus;
      racks.insert(racks_[n]);
    }
    const bool together = request_.required_level.empty() || racks.size() == 1;
    return plan.members.size() == wanted && together && *std::min_element(free.begin(), free.end()) >= 0;
  }

  using Cost = std::pair<int, int>;  // violations, then the highest priority
  Cost cost(std::uint32_t set) const {
    std::map<int, int> used;
    int highest = -1;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      ++used[pods_[i].budget];
      highest = std::max(highest, pods_[i].priority);
    }
    int violations = 0;
    for (const auto& [budget, count] : used) {
      if (budget < 0) continue;
      violations += std::max(0, count - static_cast<int>(question_.budgets[static_cast<std::size_t>(budget)]));
    }
    return {violations, highest};
  }

  std::optional<Cost> try_all() const {
    std::optional<Cost> best;
    for (std::uint32_t set = 0; set < 1U << pods_.size(); ++set) {
      if (!allowed(set) || !fits(set)) continue;
      if (!best || cost(set) < *best) best = cost(set);
    }
    return best;
  }

  GangCluster cluster_;
  std::vector<int> gpus_;
  std::vector<int> racks_;
  std::vector<NodeId> ids_;
  std::vector<int> free_;
  std::vector<Gang> gangs_;
  std::vector<Held> pods_;
  GangRequest request_;
  GangEvictionQuestion question_;
};

Bed::Seen Bed::seen;

TEST(GangEvictionProperty, TheGangFitsThenAndNoSetViolatesFewerBudgetsOrSparesMoreImportantPods) {
  test::for_all(1500, [] {
    Bed bed;
    bed.ask();
  });
  EXPECT_GE(Bed::seen.none, 50);
  EXPECT_GE(Bed::seen.some, 200);
  EXPECT_GE(Bed::seen.whole_gangs, 20);
}

}  // namespace
}  // namespace mortise::property
