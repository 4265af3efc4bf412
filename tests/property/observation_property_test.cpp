// What is seen of a node's GPUs, against every way in which its pods could hold them, listed in full.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/placement/cluster_state.h"
#include "scheduler/topology/sources/synthetic.h"
#include "tests/support/for_all.h"

namespace mortise::property {
namespace {

using placement::GpuMask;
using placement::Knowledge;
using placement::NodeTopology;
using placement::Observed;
using placement::PodRequest;

int below(int bound) {
  return *rc::gen::inRange(0, bound);
}

/// Which pod, by serial number, holds what.
using Assignment = std::map<int, GpuMask>;

GpuMask held_in(const Assignment& assignment) {
  GpuMask held = 0;
  for (const auto& [serial, gpus] : assignment) held |= gpus;
  return held;
}

/// A node whose pods' GPUs nobody told, and all assignments that are consistent with what was seen since.
class Bed {
 public:
  Bed() {
    static const std::vector<std::string> machines = {"numa:2 gpu:2", "numa:2 gpu:3", "numa:3 gpu:2", "numa:1 gpu:4"};
    const auto reading = topology::read_synthetic(machines[static_cast<std::size_t>(below(4))], "test");
    RC_ASSERT(reading.ok());
    static placement::NodeTopologyTable table;  // makes each machine's tables once
    placement::TopologySpec spec;
    spec.kubelet.policy = static_cast<topology::TopologyPolicy>(below(4));
    const auto made = table.intern(reading->machine, spec);
    RC_ASSERT(made.ok());
    node_ = *made;
    placement::NodeSpec on{"n", 64'000, 1 << 30, 110, node_->gpus(), "A100"};
    on.topology = node_;
    RC_ASSERT(cluster_.add_node(on, 0).ok());
  }

  const NodeTopology& node() const { return *node_; }
  const Assignment& truth() const { return truth_; }

  void arrive(int serial, Knowledge knowledge) {
    PodRequest pod;
    pod.name = "p" + std::to_string(serial);
    pod.gpus = 1 + below(2);
    const GpuMask free = node_->all_gpus() & ~held_in(truth_);
    if (std::popcount(free) < pod.gpus) return;
    const GpuMask got = draw(free, pod.gpus);
    const GpuMask record = draw(node_->all_gpus() & ~placement::held_gpus(state()), pod.gpus);
    const auto id = cluster_.adopt(cluster_.intern(pod), kNode, placement::device_set(record), knowledge);
    RC_ASSERT(id.ok());
    ids_[serial] = *id;
    truth_[serial] = got;
    all_counted_ = false;
    std::set<Assignment> next;
    for (const Assignment& one : possible_) {
      for (const GpuMask gpus : sets(node_->all_gpus() & ~held_in(one), pod.gpus)) {
        Assignment more = one;
        more[serial] = gpus;
        next.insert(std::move(more));
      }
    }
    possible_ = std::move(next);
  }

  void leave() {
    if (ids_.empty()) return;
    const int serial = any_pod();
    RC_ASSERT(cluster_.release(ids_[serial]).ok());
    ids_.erase(serial);
    truth_.erase(serial);
    loose_ = !ids_.empty() && (loose_ || !all_counted_);
    std::set<Assignment> next;
    for (Assignment one : possible_) {
      one.erase(serial);
      next.insert(std::move(one));
    }
    possible_ = std::move(next);
  }

  Observed see_devices() { return see_devices(any_pod()); }
  Observed see_devices(int serial) {
    const auto seen = cluster_.observe_devices(ids_[serial], placement::device_set(truth_[serial]));
    RC_ASSERT(seen.ok());
    std::erase_if(possible_, [&](const Assignment& one) { return one.at(serial) != truth_[serial]; });
    return *seen;
  }

  Observed see_count() {
    std::map<int, int> counts;
    for (const GpuMask alike : node_->numa_classes()) {
      const int numa = std::countr_zero(node_->numa_of(std::countr_zero(alike)));
      counts[numa] = std::popcount(held_in(truth_) & alike);
    }
    std::vector<AllocationId> all;
    for (const auto& [serial, id] : ids_) all.push_back(id);
    const auto seen = cluster_.observe_count(kNode, counts, all);
    RC_ASSERT(seen.ok());
    loose_ = loose_ || (*seen != Observed::kNothingNew && std::exchange(counts_, 1) > 0);
    all_counted_ = true;
    const GpuMask count = placement::by_numa_class(*node_, held_in(truth_));
    std::erase_if(possible_,
                  [&](const Assignment& one) { return placement::by_numa_class(*node_, held_in(one)) != count; });
    return *seen;
  }

  /// Whatever is tried on the books leaves them as they were.
  void try_out() {
    const StateId before = cluster_.node_state(kNode);
    const auto mark = cluster_.mark();
    for (const auto& [serial, id] : ids_) {
      if (below(2) == 0) RC_ASSERT(cluster_.release(id).ok());
    }
    cluster_.undo(mark);
    RC_ASSERT(cluster_.check().ok());
    RC_ASSERT(cluster_.node_state(kNode) == before);
  }

  bool empty() const { return ids_.empty(); }
  /// The lists of pods are independent of each other but for the last count of them, so that where a pod that was not
  /// counted has left, or after another count, more may be believed than is possible.
  bool loose() const { return loose_; }

  /// The states that are believed, by the GPUs that are held; by NUMA node where that is all that is known.
  std::set<GpuMask> believed() const {
    const placement::Belief* belief = cluster_.belief_of(kNode);
    if (belief == nullptr) return {placement::held_gpus(state())};
    RC_ASSERT(belief->complete);
    std::set<GpuMask> states;
    for (const placement::Hold& one : belief->states) states.insert(one.gpus);
    return states;
  }
  bool by_numa() const {
    const placement::Belief* belief = cluster_.belief_of(kNode);
    return belief != nullptr && belief->by_numa;
  }

  std::set<GpuMask> possible() const {
    std::set<GpuMask> states;
    for (const Assignment& one : possible_) {
      states.insert(by_numa() ? placement::by_numa_class(*node_, held_in(one)) : held_in(one));
    }
    return states;
  }
  const placement::NodeState& state() const { return cluster_.state_of(kNode); }
  void check() const { RC_ASSERT(cluster_.check().ok()); }

 private:
  static constexpr NodeId kNode{0};

  static std::vector<GpuMask> sets(GpuMask of, int count) {
    std::vector<GpuMask> found;
    for (GpuMask set = of;; set = (set - 1) & of) {
      if (std::popcount(set) == count) found.push_back(set);
      if (set == 0) return found;
    }
  }
  static GpuMask draw(GpuMask of, int count) {
    const std::vector<GpuMask> all = sets(of, count);
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }
  int any_pod() const { return std::next(ids_.begin(), below(static_cast<int>(ids_.size())))->first; }

  std::shared_ptr<const NodeTopology> node_;
  placement::ClusterState cluster_;
  std::map<int, AllocationId> ids_;
  Assignment truth_;
  std::set<Assignment> possible_ = {Assignment{}};
  bool all_counted_ = false;
  bool loose_ = false;
  int counts_ = 0;
};

TEST(ObservationProperty, NothingPossibleIsLeftOutAndNothingElseBelieved) {
  test::for_all(3000, [] {
    Bed bed;
    const int events = 3 + below(9);
    for (int i = 0; i < events; ++i) {
      const int what = below(6);
      if (what < 2 || bed.empty()) {
        bed.arrive(i, Knowledge::kUnknown);
      } else if (what == 2) {
        bed.leave();
      } else if (what == 3) {
        RC_ASSERT(bed.see_devices() != Observed::kMismatch);
      } else if (what == 4) {
        RC_ASSERT(bed.see_count() != Observed::kMismatch);
      } else {
        bed.try_out();
      }
      bed.check();
      const std::set<GpuMask> believed = bed.believed();
      const std::set<GpuMask> possible = bed.possible();
      RC_ASSERT(std::includes(believed.begin(), believed.end(), possible.begin(), possible.end()));
      if (!bed.loose()) RC_ASSERT(believed == possible);
    }
  });
}

// Pods are thought to hold just what is on record, and hold something else.
TEST(ObservationProperty, WhatIsSeenWinsOverWhatWasThought) {
  test::for_all(2000, [] {
    Bed bed;
    for (int i = 0; i < 5; ++i) bed.arrive(i, below(3) == 0 ? Knowledge::kUnknown : Knowledge::kExact);
    if (bed.empty()) return;
    const GpuMask count = placement::by_numa_class(bed.node(), held_in(bed.truth()));
    const bool as_thought = placement::by_numa_class(bed.node(), placement::held_gpus(bed.state())) == count;
    const bool all_known = bed.believed().size() == 1;
    const Observed seen = bed.see_count();
    if (all_known) RC_ASSERT((seen == Observed::kMismatch) == !as_thought);
    bed.check();
    for (const GpuMask state : bed.believed()) RC_ASSERT(placement::by_numa_class(bed.node(), state) == count);
    // One that is seen may push out what was seen of another before, so that it takes two rounds.
    for (int round = 0; round < 2; ++round) {
      for (const auto& [serial, gpus] : Assignment(bed.truth())) (void)bed.see_devices(serial);
      bed.check();
    }
    RC_ASSERT(bed.believed() == std::set<GpuMask>{held_in(bed.truth())});
    for (const auto& [serial, gpus] : Assignment(bed.truth())) {
      RC_ASSERT(bed.see_devices(serial) == Observed::kNothingNew);
    }
  });
}

}  // namespace
}  // namespace mortise::property
