// The victims that placement names, against all sets of pods tried one by one through the engine.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "scheduler/placement/preemption.h"
#include "scheduler/topology/sources/synthetic.h"
#include "tests/support/for_all.h"

namespace mortise::property {
namespace {

using placement::Eviction;
using placement::EvictionBudget;
using placement::EvictionQuestion;
using placement::Knowledge;
using placement::PodRequest;
using topology::TopologyPolicy;

constexpr Bytes kGiB = 1024 * kMiB;

int below(int bound) {
  return *rc::gen::resize(100, rc::gen::inRange(0, bound));  // the full range, however small the case
}

/// Small pods without wishes fill a node; larger ones with wishes then ask for room.
PodRequest any_pod(int serial, bool asks) {
  PodRequest pod;
  pod.name = "p" + std::to_string(serial);
  placement::ContainerAsk ask;
  ask.name = "c";
  ask.cpu = 1000 * below(asks ? 6 : 3);
  ask.memory = below(12) * kGiB;
  ask.gpus = below(6) == 0 ? 0 : 1 + below(asks ? 4 : 2);
  if (ask.gpus == 1 && below(3) == 0) ask.gpu_milli = 250 * (1 + below(3));
  ask.kubelet_gpus = ask.gpus > 0 && ask.gpu_milli == kWholeGpu;
  RC_ASSERT(placement::count_containers({&ask, 1}, pod).ok());
  pod.qos = below(3) == 0 ? topology::QosClass::kBurstable : topology::QosClass::kGuaranteed;
  if (below(asks ? 2 : 6) == 0) pod.topology_policy = static_cast<TopologyPolicy>(below(4));
  if (below(asks ? 3 : 8) == 0) pod.nvlink = placement::NvlinkWish::kRequired;
  return pod;
}

/// One node with pods on it, their priorities and the budgets they are under.
class Bed {
 public:
  Bed() {
    placement::NodeSpec node{"n", 16'000, 128 * kGiB, 6 + below(8), 8, "A100"};
    if (below(3) > 0) node.topology = any_topology();
    if (node.topology) node.gpus = node.topology->gpus();
    if (!node.topology && below(4) == 0) node.gpus_lost = 1 + below(2);
    RC_ASSERT(cluster_.add_node(node, 0).ok());
    engine_.emplace(cluster_, *placement::make_policy("best-fit", placement::TypicalPods()), 1);
    fill();
  }

  /// Asks for room for one more pod and compares with every set.
  void ask() {
    const PodRequest pod = any_pod(100, true);
    question_.pod = cluster_.intern(pod);
    question_.priority = 1 + below(4);
    const auto before = snapshot();
    EvictionBudget budget;
    const std::optional<Eviction> found = placement::cheapest_eviction(cluster_, question_, budget);
    RC_ASSERT(cluster_.check().ok());
    RC_ASSERT(snapshot() == before);

    const std::optional<Cost> cheapest = try_all(pod);
    RC_ASSERT(found.has_value() == cheapest.has_value());
    if (!found) return;
    RC_ASSERT(found->cheapest);
    for (const std::size_t victim : found->victims) RC_ASSERT(question_.pods[victim].priority < question_.priority);
    RC_ASSERT(fits_without(pod, found->victims));
    RC_ASSERT(cost_of(found->victims) == *cheapest);
    RC_ASSERT(std::is_sorted(found->victims.begin(), found->victims.end(), [&](std::size_t a, std::size_t b) {
      return question_.pods[a].priority > question_.pods[b].priority;
    }));
    if (!cheapest->victims.empty()) ++(by_topology_ ? seen.made_for_topology : seen.made_by_count);
  }

  /// How often room was made, with and without the topology having a say; so that the property is not about nothing.
  struct Seen {
    int made_by_count = 0;
    int made_for_topology = 0;
  };
  static Seen seen;

 private:
  /// In the order in which it is compared.
  struct Cost {
    std::int64_t violations = 0;
    std::int64_t highest = std::numeric_limits<std::int64_t>::min();
    std::int64_t sum = 0;
    std::int64_t gpu_seconds = 0;
    std::int64_t not_proposed = 0;
    std::vector<std::size_t> victims;

    auto key() const { return std::tuple(violations, highest, sum, gpu_seconds, not_proposed); }
    friend bool operator==(const Cost& a, const Cost& b) { return a.key() == b.key(); }
    friend bool operator<(const Cost& a, const Cost& b) { return a.key() < b.key(); }
  };

  static std::shared_ptr<const placement::NodeTopology> any_topology() {
    static const std::vector<std::string> machines = {
        "numa:2 cpu:8 memory:64Gi gpu:4",
        "numa:2 cpu:8 memory:64Gi gpu:2 nvlink:0-1*2,2-3*2",
        "numa:2 cpu:8 memory:64Gi gpu:4 nvlink:0-1*1,0-3*2,1-2*2,2-3*1,4-5*1,4-7*2,5-6*2,6-7*1",
        "numa:4 cpu:4 memory:32Gi gpu:2",
    };
    const auto reading = topology::read_synthetic(machines[static_cast<std::size_t>(below(4))], "test");
    RC_ASSERT(reading.ok());
    placement::TopologySpec spec;
    spec.kubelet.policy = static_cast<TopologyPolicy>(below(4));
    spec.kubelet.cpu_static = below(3) == 0;
    spec.mode = below(2) == 0 ? placement::AssignmentMode::kEnforced : placement::AssignmentMode::kPredicted;
    static placement::NodeTopologyTable table;  // makes each machine's tables once
    const auto made = table.intern(reading->machine, spec);
    RC_ASSERT(made.ok());
    return *made;
  }

  void fill() {
    const int budgets = below(3);
    for (int b = 0; b < budgets; ++b) question_.budgets.push_back(below(3));
    const int arrivals = 3 + below(8);
    for (int i = 0; i < arrivals; ++i) {
      const PodRequest pod = any_pod(i, false);
      const placement::Decision decision = engine_->plan(pod);
      const auto* placed = std::get_if<placement::Placed>(&decision);
      if (placed == nullptr) continue;
      const auto committed = engine_->commit(pod, *placed, below(2) == 0 ? Knowledge::kExact : Knowledge::kPredicted);
      RC_ASSERT(committed.ok());
      placement::EvictablePod evictable;
      evictable.allocation = *committed;
      evictable.priority = below(4) - 1;
      evictable.running = below(4) * 3600 * kSecond;
      evictable.proposed = below(3) == 0;
      for (int b = 0; b < budgets; ++b) {
        if (below(2) == 0) evictable.budgets.push_back(static_cast<std::uint32_t>(b));
      }
      weights_.push_back(std::int64_t{pod.gpus} * (pod.gpus > 0 ? pod.gpu_milli : 0));
      question_.pods.push_back(evictable);
    }
  }

  /// All that could be told apart from outside.
  std::tuple<placement::NodeState, placement::ClusterTotals, std::vector<placement::DeviceSet>> snapshot() const {
    std::vector<placement::DeviceSet> devices;
    for (const auto& pod : question_.pods) {
      const placement::Allocation* held = cluster_.allocation(pod.allocation);
      RC_ASSERT(held != nullptr);
      devices.push_back(held->devices);
    }
    return {cluster_.state_of(question_.node), cluster_.totals(), devices};
  }

  bool fits_without(const PodRequest& pod, const std::vector<std::size_t>& victims) {
    const auto mark = cluster_.mark();
    for (const std::size_t victim : victims) RC_ASSERT(cluster_.release(question_.pods[victim].allocation).ok());
    const placement::Decision decision = engine_->plan(pod);
    const bool fits = std::holds_alternative<placement::Placed>(decision);
    if (const auto* rejected = std::get_if<placement::Rejected>(&decision)) {
      by_topology_ |= rejected->main_reason == placement::Reason::kTopologyAffinity ||
                      rejected->main_reason == placement::Reason::kTopologyGuarantee ||
                      rejected->main_reason == placement::Reason::kTopologyState;
    }
    cluster_.undo(mark);
    return fits;
  }

  Cost cost_of(std::vector<std::size_t> victims) const {
    std::sort(victims.begin(), victims.end(), [&](std::size_t a, std::size_t b) {
      const auto& x = question_.pods[a];
      const auto& y = question_.pods[b];
      if (x.priority != y.priority) return x.priority > y.priority;
      if (x.running != y.running) return x.running > y.running;
      return x.allocation < y.allocation;
    });
    Cost cost;
    std::vector<std::int64_t> allowed = question_.budgets;
    for (const std::size_t victim : victims) {
      const auto& pod = question_.pods[victim];
      bool violates = false;
      for (const std::uint32_t budget : pod.budgets) {
        allowed[budget] -= 1;
        if (allowed[budget] < 0) violates = true;
      }
      cost.violations += violates ? 1 : 0;
      cost.highest = std::max<std::int64_t>(cost.highest, pod.priority);
      cost.sum += pod.priority + (std::int64_t{1} << 31);
      cost.gpu_seconds += weights_[victim] * (pod.running / kSecond);
      cost.not_proposed += pod.proposed ? 0 : 1;
    }
    cost.victims = std::move(victims);
    return cost;
  }

  std::optional<Cost> try_all(const PodRequest& pod) {
    std::optional<Cost> best;
    for (std::uint32_t set = 0; set < (1U << question_.pods.size()); ++set) {
      std::vector<std::size_t> victims;
      bool allowed = true;
      for (std::size_t i = 0; i < question_.pods.size(); ++i) {
        if ((set >> i & 1U) == 0) continue;
        allowed = allowed && question_.pods[i].priority < question_.priority;
        victims.push_back(i);
      }
      if (!allowed || !fits_without(pod, victims)) continue;
      const Cost cost = cost_of(victims);
      if (!best || cost < *best) best = cost;
    }
    return best;
  }

  placement::ClusterState cluster_;
  std::optional<placement::Engine> engine_;
  EvictionQuestion question_;
  std::vector<std::int64_t> weights_;  // milli-GPU of each pod
  bool by_topology_ = false;
};

Bed::Seen Bed::seen;

TEST(PreemptionProperty, TheVictimsAreTheCheapestSetOfAllAndTheStateIsAsBefore) {
  test::for_all(4000, [] {
    Bed bed;
    bed.ask();
  });
  EXPECT_GE(Bed::seen.made_by_count, 100);
  EXPECT_GE(Bed::seen.made_for_topology, 100);
}

}  // namespace
}  // namespace mortise::property
