// Plans of gangs against every way there is, on small clusters: whether there is one never differs, and the level and
// the number of domains are the best there are. What the nodes hold is reckoned here anew, from devices, CPU and pods.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/base/rng.h"
#include "scheduler/placement/node_trial.h"
#include "scheduler/topology/sources/synthetic.h"
#include "tests/support/gang_cluster.h"

namespace mortise::property {
namespace {

using namespace placement;

using Vector = std::vector<int>;  // members of each role
using Vectors = std::set<Vector>;

struct Box {
  std::vector<int> devices;  // milli-GPU left, ascending
  MilliCpu cpu = 0;
  int pods = 0;
  auto operator<=>(const Box&) const = default;
};

struct NodeModel {
  NodeId id;
  std::string zone;
  std::string rack;
  Box now;
  Box empty;
  std::vector<bool> allowed;   // by role
  std::vector<bool> eligible;  // by role
};

/// One more pod, in every way it can go into the box.
std::vector<Box> takes(const Box& box, const PodRequest& pod) {
  std::vector<Box> found;
  if (box.pods < 1 || box.cpu < pod.cpu) return found;
  Box left = box;
  left.pods -= 1;
  left.cpu -= pod.cpu;
  if (pod.gpus == 0) return {left};
  if (pod.gpu_milli == kWholeGpu) {
    for (int taken = 0; taken < pod.gpus; ++taken) {
      if (left.devices.empty() || left.devices.back() < kWholeGpu) return found;
      left.devices.pop_back();
      left.devices.insert(left.devices.begin(), 0);
    }
    return {left};
  }
  for (std::size_t d = 0; d < left.devices.size(); ++d) {
    if (left.devices[d] < pod.gpu_milli) continue;
    Box other = left;
    other.devices[d] -= static_cast<int>(pod.gpu_milli);
    std::sort(other.devices.begin(), other.devices.end());
    found.push_back(other);
  }
  return found;
}

/// A cluster, a gang, and all that is possible.
class Case {
 public:
  explicit Case(std::uint64_t seed) : rng_(seed), cluster_(levels(), "best-fit") {
    make_gang();
    const int nodes = 1 + below(6);
    for (int n = 0; n < nodes; ++n) make_node(n);
    make_lists();
    for (int n = 0; n < nodes && !below(5); ++n) bound_.push_back(nodes_[static_cast<std::size_t>(n)].id);
    request_.bound = bound_;
  }

  struct Verdict {
    bool feasible = false;
    bool placed_whole = false;
    bool level_best = true;
    bool domains_best = true;
    bool nodes_best = true;
    bool all_members = true;
  };
  Verdict judge();

 private:
  static std::vector<TopologyLevel> levels() { return {{"zone", "zone"}, {"rack", "rack"}}; }
  int below(int bound) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound))); }

  void make_gang() {
    int left = 1 + below(8);
    const int roles = 1 + below(4);
    for (int r = 0; r < roles && left > 0; ++r) {
      const int count = r + 1 == roles ? left : 1 + below(left);
      left -= count;
      PodRequest pod = GangCluster::pod(below(4) == 0 ? 0 : 1 + below(3), 500 * below(5));
      if (pod.gpus == 1 && below(2) == 0) pod.gpu_milli = 100 * (2 + below(7));
      GangRole role = GangCluster::role("r" + std::to_string(r), count, pod);
      if (below(4) == 0) role.min = below(count + 1);
      request_.roles.push_back(role);
      total_ += count;
    }
    if (below(6) == 0) request_.min = 1 + below(total_);
    const std::vector<std::string> names = {"", "", "zone", "rack", "node"};
    request_.required_level = names[static_cast<std::size_t>(below(below(4) == 0 ? 5 : 4))];
    request_.preferred_level = names[static_cast<std::size_t>(below(5))];
  }

  void make_node(int n) {
    NodeSpec spec{"n" + std::to_string(n), 2'000 + 1'000 * below(7), 1, 1 + below(6), below(5), ""};
    NodeModel node;
    const std::string zone = "z" + std::to_string(below(2));
    const std::string rack = "r" + std::to_string(below(3));
    const int labels = below(8);  // sometimes none, or no rack
    node.zone = labels == 0 ? "own " + spec.name : zone;
    node.rack = node.zone + "/" + (labels < 2 ? "own " + spec.name : rack);
    node.id = cluster_.node(spec, labels == 0 ? "" : labels == 1 ? zone : zone + "/" + rack, spec.gpus);
    node.empty = {std::vector<int>(static_cast<std::size_t>(spec.gpus), static_cast<int>(kWholeGpu)), spec.cpu,
                  spec.pods};
    node.now = node.empty;
    for (int p = below(4); p > 0; --p) occupy(node);
    nodes_.push_back(node);
  }

  void occupy(NodeModel& node) {
    const NodeState& state = cluster_.cluster.state_of(node.id);
    PodRequest pod =
        GangCluster::pod(below(3) == 0 ? 0 : 1, 500 * below(3), below(2) == 0 ? kWholeGpu : 100 * (1 + below(9)));
    DeviceSet devices;
    const auto free = state.free_devices();
    const int device = below(std::max<int>(1, state.devices));
    if (pod.gpus > 0) devices.insert(device);
    if (pod.gpus > 0 && (free.empty() || free[static_cast<std::size_t>(device)] < pod.gpu_milli)) return;
    if (!cluster_.cluster.apply(cluster_.cluster.intern(pod), node.id, devices).ok()) return;
    const NodeState& after = cluster_.cluster.state_of(node.id);
    node.now.devices.assign(after.free_devices().begin(), after.free_devices().end());
    std::sort(node.now.devices.begin(), node.now.devices.end());
    node.now.cpu = after.cpu_free;
    node.now.pods = after.pods_free;
  }

  void make_lists() {
    lists_.resize(2 * request_.roles.size());
    for (std::size_t r = 0; r < request_.roles.size(); ++r) {
      const bool some = below(4) == 0;
      for (NodeModel& node : nodes_) {
        const bool eligible = !some || below(3) > 0;
        const bool allowed = eligible && (!some || below(4) > 0);
        node.eligible.push_back(eligible);
        node.allowed.push_back(allowed);
        if (allowed) lists_[2 * r].push_back(node.id);
        if (eligible) lists_[2 * r + 1].push_back(node.id);
      }
      if (!some) continue;
      request_.roles[r].allowed = lists_[2 * r];
      request_.roles[r].eligible = lists_[2 * r + 1];
    }
  }

  /// Every number of members of each role that fits on the node.
  Vectors of_node(const NodeModel& node, bool empty) const {
    std::set<std::pair<Vector, Box>> seen;
    std::vector<std::pair<Vector, Box>> open = {{Vector(request_.roles.size(), 0), empty ? node.empty : node.now}};
    Vectors found;
    while (!open.empty()) {
      const auto [have, box] = open.back();
      open.pop_back();
      if (!seen.emplace(have, box).second) continue;
      found.insert(have);
      for (std::size_t r = 0; r < request_.roles.size(); ++r) {
        if (!(empty ? node.eligible : node.allowed)[r] || have[r] == request_.roles[r].count) continue;
        Vector more = have;
        ++more[r];
        for (const Box& left : takes(box, request_.roles[r].pod)) open.emplace_back(more, left);
      }
    }
    return found;
  }

  Vectors of_nodes(const std::vector<std::size_t>& nodes, bool empty) const {
    Vectors found = {Vector(request_.roles.size(), 0)};
    for (const std::size_t n : nodes) {
      Vectors more;
      for (const Vector& a : found) {
        for (const Vector& b : rooms_[empty ? 1 : 0][n]) {
          Vector sum = a;
          bool within = true;
          for (std::size_t r = 0; r < sum.size(); ++r) {
            sum[r] += b[r];
            within = within && sum[r] <= request_.roles[r].count;
          }
          if (within) more.insert(sum);
        }
      }
      found = std::move(more);
    }
    return found;
  }

  /// -1 the cluster, 0 zones, 1 racks, 2 nodes.
  std::string domain_of(std::size_t node, int level) const {
    const NodeModel& model = nodes_[node];
    return level < 0 ? "" : level == 0 ? model.zone : level == 1 ? model.rack : std::to_string(node);
  }
  std::map<std::string, std::vector<std::size_t>> domains(int level) const {
    std::map<std::string, std::vector<std::size_t>> found;
    for (std::size_t n = 0; n < nodes_.size(); ++n) found[domain_of(n, level)].push_back(n);
    return found;
  }
  bool has_bound(const std::vector<std::size_t>& nodes) const {
    return std::all_of(bound_.begin(), bound_.end(), [&](NodeId id) {
      return std::any_of(nodes.begin(), nodes.end(), [&](std::size_t n) { return nodes_[n].id == id; });
    });
  }
  static int sum(const Vector& vector) {
    int total = 0;
    for (const int count : vector) total += count;
    return total;
  }
  bool enough(const Vector& vector) const {
    for (std::size_t r = 0; r < vector.size(); ++r) {
      if (vector[r] < request_.roles[r].min) return false;
    }
    return sum(vector) >= std::max(1, request_.min);
  }
  int level_of(const std::string& name, int unsaid) const {
    return name.empty() ? unsaid : name == "zone" ? 0 : name == "rack" ? 1 : 2;
  }

  /// The most members that fit in one domain of the required level; 0: too few.
  int most(bool empty) const {
    int best = 0;
    for (const auto& [name, nodes] : domains(level_of(request_.required_level, -1))) {
      if (!empty && !has_bound(nodes)) continue;
      for (const Vector& vector : of_nodes(nodes, empty)) {
        if (enough(vector)) best = std::max(best, sum(vector));
      }
    }
    return best;
  }

  /// The fewest domains of `level` below these nodes that hold the target, those counted in which members are.
  int fewest(const std::vector<std::size_t>& nodes, int level, const Vector& target) const {
    std::map<std::string, std::vector<std::size_t>> parts;
    for (const std::size_t n : nodes) parts[domain_of(n, level)].push_back(n);
    int best = 1000;
    for (std::uint32_t chosen = 0; chosen < 1U << parts.size(); ++chosen) {
      std::vector<std::size_t> of;
      std::uint32_t at = 0;
      for (const auto& [name, members] : parts) {
        if ((chosen >> at++ & 1) != 0) of.insert(of.end(), members.begin(), members.end());
      }
      const int used = std::popcount(chosen);
      if (used < best && has_bound(of) && of_nodes(of, false).contains(target)) best = used;
    }
    return best;
  }

  void judge_plan(const GangPlan& plan, Verdict& verdict) const;

  Rng rng_;
  GangCluster cluster_;
  GangRequest request_;
  int total_ = 0;
  std::vector<NodeModel> nodes_;
  std::vector<std::vector<NodeId>> lists_;
  std::vector<NodeId> bound_;
  std::vector<Vectors> rooms_[2];
};

void Case::judge_plan(const GangPlan& plan, Verdict& verdict) const {
  Vector target(request_.roles.size(), 0);
  std::set<std::size_t> used;
  std::set<std::pair<std::uint32_t, std::uint32_t>> names;
  const auto index_of = [&](NodeId id) {
    const auto at = std::find_if(nodes_.begin(), nodes_.end(), [&](const NodeModel& node) { return node.id == id; });
    return static_cast<std::size_t>(at - nodes_.begin());
  };
  for (const GangMember& member : plan.members) {
    ++target[member.role];
    used.insert(index_of(member.node));
    EXPECT_TRUE(nodes_[index_of(member.node)].allowed[member.role]);
    EXPECT_TRUE(names.emplace(member.role, member.index).second);
    EXPECT_LT(member.index, static_cast<std::uint32_t>(request_.roles[member.role].count));
  }
  EXPECT_TRUE(enough(target));
  verdict.all_members = sum(target) == most(false);
  for (const NodeId id : bound_) used.insert(index_of(id));
  const auto spans = [&](int level) {
    std::set<std::string> parts;
    for (const std::size_t n : used) parts.insert(domain_of(n, level));
    return static_cast<int>(parts.size());
  };
  const int required = level_of(request_.required_level, -1);
  EXPECT_EQ(spans(required), 1);
  const int preferred = std::max(level_of(request_.preferred_level, 2), required);
  int level = preferred;
  while (spans(level) > 1) --level;
  for (int finer = preferred; finer > level; --finer) {
    for (const auto& [name, nodes] : domains(finer)) {
      if (has_bound(nodes) && of_nodes(nodes, false).contains(target)) verdict.level_best = false;
    }
  }
  if (level == 2) return;
  int least_domains = 1000;
  int least_nodes = 1000;
  for (const auto& [name, nodes] : domains(level)) {
    if (!has_bound(nodes) || !of_nodes(nodes, false).contains(target)) continue;
    least_domains = std::min(least_domains, fewest(nodes, level + 1, target));
    least_nodes = std::min(least_nodes, fewest(nodes, 2, target));
  }
  verdict.domains_best = spans(level + 1) == least_domains;
  verdict.nodes_best = static_cast<int>(used.size()) == least_nodes;
}

Case::Verdict Case::judge() {
  for (const NodeModel& node : nodes_) {
    rooms_[0].push_back(of_node(node, false));
    rooms_[1].push_back(of_node(node, true));
  }
  Verdict verdict;
  const GangDecision decision = cluster_.plan(request_);  // looks that nothing changed and that the plan can be taken
  verdict.feasible = most(false) > 0;
  if (const auto* rejected = std::get_if<GangRejected>(&decision)) {
    EXPECT_FALSE(verdict.feasible) << rejected->detail;
    EXPECT_TRUE(rejected->exact);
    if (bound_.empty()) {
      EXPECT_EQ(rejected->reason == GangReason::kNeverFits, most(true) == 0) << rejected->detail;
    }
    return verdict;
  }
  EXPECT_TRUE(verdict.feasible);
  if (!verdict.feasible) return verdict;
  const auto& plan = std::get<GangPlan>(decision);
  verdict.placed_whole = static_cast<int>(plan.members.size()) == total_;
  judge_plan(plan, verdict);
  return verdict;
}

TEST(GangProperty, PlansAreThoseOfTryingEverything) {
  const char* asked = std::getenv("MORTISE_GANG_CASES");
  const int cases = asked != nullptr ? std::atoi(asked) : 5000;
  int placed = 0;
  int whole = 0;
  int level = 0;
  int domains = 0;
  int nodes = 0;
  for (int seed = 1; seed <= cases; ++seed) {
    SCOPED_TRACE("case " + std::to_string(seed));
    const Case::Verdict verdict = Case(static_cast<std::uint64_t>(seed)).judge();
    if (testing::Test::HasFailure()) return;
    if (!verdict.feasible) continue;
    ASSERT_TRUE(verdict.all_members);
    ++placed;
    whole += verdict.placed_whole ? 1 : 0;
    level += verdict.level_best ? 1 : 0;
    domains += verdict.level_best && verdict.domains_best ? 1 : 0;
    nodes += verdict.nodes_best ? 1 : 0;
    if (!verdict.level_best || !verdict.domains_best) std::printf("not the best: case %d\n", seed);
  }
  std::printf(
      "%d cases, %d placed, %d of them whole; best level %d, and fewest domains %d, and fewest nodes whatever the "
      "domain %d\n",
      cases, placed, whole, level, domains, nodes);
  EXPECT_GT(placed, cases / 4);
  EXPECT_LT(placed, cases);
  EXPECT_GE(100 * domains, 99 * placed);
}

/// A node on which kubelet aligns pods, or we choose the devices, with pods on it.
void add_aligned_node(GangCluster& on, NodeTopologyTable& table, Rng& rng, const std::string& name) {
  TopologySpec spec;
  spec.kubelet.policy = static_cast<topology::TopologyPolicy>(rng.below(4));
  spec.mode = rng.below(3) == 0 ? AssignmentMode::kEnforced : AssignmentMode::kPredicted;
  NodeSpec node{name, 16'000, std::int64_t{128} << 30, 20, 8, "A100"};
  const auto machine = topology::read_synthetic("numa:2 cpu:8 memory:64Gi gpu:4", "test");
  if (rng.below(4) > 0) node.topology = *table.intern(machine->machine, spec);
  const NodeId id = on.node(node, "", 8);
  for (std::uint64_t pods = rng.below(4); pods > 0; --pods) {
    PodRequest pod = GangCluster::pod(static_cast<int>(rng.below(3)), 1000 * static_cast<MilliCpu>(rng.below(3)));
    if (node_reason(on.cluster, id, on.cluster.intern(pod)) != Reason::kNone) continue;
    const PodShape shape = on.cluster.shapes().shape(on.cluster.intern(pod));
    const DeviceSet devices = on.cluster.choose_devices(on.cluster.state_of(id), shape, std::nullopt);
    ASSERT_TRUE(on.cluster.apply(on.cluster.intern(pod), id, devices, Knowledge::kPredicted).ok());
  }
}

// With one role, what fits is what the nodes take one after another.
TEST(GangProperty, KubeletsAlignmentIsForeseenForEveryMember) {
  int placed = 0;
  constexpr int kCases = 400;
  for (int seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE("case " + std::to_string(seed));
    Rng rng(static_cast<std::uint64_t>(seed));
    NodeTopologyTable table;
    GangCluster on({{"rack", "rack"}}, "topology");
    const std::uint64_t nodes = 1 + rng.below(4);
    for (std::uint64_t n = 0; n < nodes; ++n) add_aligned_node(on, table, rng, "n" + std::to_string(n));
    GangRequest gang;
    const std::uint64_t roles = 1 + rng.below(3);
    for (std::uint64_t r = 0; r < roles; ++r) {
      PodRequest pod = GangCluster::pod(1 + static_cast<int>(rng.below(5)), 1000 * static_cast<MilliCpu>(rng.below(4)));
      if (rng.below(3) == 0) pod.topology_policy = static_cast<topology::TopologyPolicy>(rng.below(4));
      gang.roles.push_back(GangCluster::role("r" + std::to_string(r), 1 + static_cast<int>(rng.below(4)), pod));
    }
    const GangDecision decision = on.plan(gang);
    if (testing::Test::HasFailure()) return;
    const bool fits = std::holds_alternative<GangPlan>(decision);
    placed += fits ? 1 : 0;
    if (roles > 1) continue;
    std::int64_t sum = 0;
    for (std::uint32_t n = 0; n < nodes; ++n) {
      sum += room(on.cluster, NodeId{n}, on.cluster.intern(gang.roles[0].pod), topology::Objective::kBottleneck);
    }
    ASSERT_EQ(fits, sum >= gang.roles[0].count);
  }
  EXPECT_GT(placed, kCases / 4);
  EXPECT_LT(placed, kCases);
}

}  // namespace
}  // namespace mortise::property
