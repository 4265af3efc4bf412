// What placement foresees of kubelet, against an agent that draws at random among all that kubelet and the plugin are
// free to do. The agent decides by the Topology Manager mirror, which the tests of the oracle hold against kubelet.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "scheduler/topology/sources/synthetic.h"
#include "tests/support/for_all.h"
#include "tests/support/node_agent.h"

namespace mortise::property {
namespace {

using placement::GpuMask;
using placement::Hold;
using placement::Knowledge;
using placement::NodeTopology;
using placement::PodRequest;
using topology::TopologyPolicy;

constexpr Bytes kGiB = 1024 * kMiB;

int below(int bound) {
  return *rc::gen::inRange(0, bound);
}

struct World {
  std::string machine;
  topology::KubeletConfig kubelet;
  placement::AssignmentMode mode = placement::AssignmentMode::kPredicted;
  std::uint64_t seed = 0;
};

World any_world() {
  // Everything is per NUMA node.
  static const std::vector<std::string> machines = {
      "numa:2 cpu:8 memory:64Gi gpu:4",
      "numa:2 cpu:8 memory:64Gi gpu:2 nvlink:0-1*2,2-3*2",
      "numa:2 cpu:8 memory:64Gi gpu:4 nvlink:0-1*1,0-3*2,1-2*2,2-3*1,4-5*1,4-7*2,5-6*2,6-7*1",
      "numa:2 cpu:8 memory:64Gi gpu:4 nvswitch:1",
      "numa:4 cpu:4 memory:32Gi gpu:2",
      "numa:1 cpu:16 memory:64Gi gpu:4",
  };
  World world;
  world.machine = machines[static_cast<std::size_t>(below(static_cast<int>(machines.size())))];
  world.kubelet.policy = static_cast<TopologyPolicy>(below(4));
  world.kubelet.scope = below(2) == 0 ? topology::TopologyScope::kContainer : topology::TopologyScope::kPod;
  world.kubelet.cpu_static = below(2) == 0;
  world.kubelet.memory_static = below(3) == 0;
  world.mode = below(5) == 0 ? placement::AssignmentMode::kEnforced : placement::AssignmentMode::kPredicted;
  world.seed = static_cast<std::uint64_t>(below(1 << 30));
  return world;
}

PodRequest any_pod(int serial) {
  PodRequest pod;
  pod.name = "p" + std::to_string(serial);
  std::vector<placement::ContainerAsk> asks;
  const int containers = 1 + (below(4) == 0 ? 1 : 0);
  for (int c = 0; c < containers; ++c) {
    placement::ContainerAsk ask;
    ask.name = "c" + std::to_string(c);
    if (c == 0 && containers > 1 && below(2) == 0) ask.kind = placement::ContainerKind::kInit;
    ask.cpu = 500 * below(7);
    ask.memory = below(12) * kGiB;
    ask.gpus = below(2) == 0 ? 1 : below(5);
    ask.kubelet_gpus = ask.gpus > 0 || below(4) == 0;
    asks.push_back(ask);
  }
  RC_ASSERT(placement::count_containers(asks, pod).ok());
  pod.qos = below(3) == 0 ? topology::QosClass::kBurstable : topology::QosClass::kGuaranteed;
  if (below(3) == 0) pod.topology_policy = static_cast<TopologyPolicy>(below(4));
  if (below(4) == 0) pod.nvlink = placement::NvlinkWish::kRequired;
  return pod;
}

class Bed {
 public:
  explicit Bed(const World& world) : rng_(world.seed) {
    const auto reading = topology::read_synthetic(world.machine, "test");
    RC_ASSERT(reading.ok());
    placement::TopologySpec spec;
    spec.kubelet = world.kubelet;
    spec.mode = world.mode;
    static placement::NodeTopologyTable table;  // makes each machine's tables once
    const auto made = table.intern(reading->machine, spec);
    RC_ASSERT(made.ok());
    topology_ = *made;
    agent_.emplace(*topology_, rng_);
    placement::NodeSpec node{"n", 64'000, 512 * kGiB, 110, topology_->gpus(), "A100"};
    node.topology = topology_;
    RC_ASSERT(cluster_.add_node(node, 0).ok());
    engine_.emplace(cluster_, *placement::make_policy("topology", placement::TypicalPods()), 1);
  }

  void arrive(int serial) {
    const PodRequest pod = any_pod(serial);
    const placement::Decision decision = engine_->plan(pod);
    const auto* placed = std::get_if<placement::Placed>(&decision);
    if (placed == nullptr) return;
    const auto committed = engine_->commit(pod, *placed, Knowledge::kPredicted);
    RC_ASSERT(committed.ok());
    const placement::PodAlignment alignment = placement::alignment_of(pod);
    const std::optional<Hold> got =
        topology_->enforced() ? enforce(*committed, alignment, placed->devices) : agent_->admit(*committed, alignment);
    RC_ASSERT(got.has_value());  // a placed pod is admitted whatever kubelet and the plugin choose
    RC_ASSERT(std::popcount(got->gpus) == alignment.gpus);
    if (alignment.nvlink_required) RC_ASSERT(alignment.gpus < 2 || topology_->nvlinked(got->gpus));
    if (alignment.at_least == TopologyPolicy::kSingleNumaNode && topology_->kubelet().policy < alignment.at_least) {
      RC_ASSERT(got->gpus == 0 || topology_->on_one_numa(got->gpus));
    }
    held_.push_back(*committed);
    got_[*committed] = got->gpus;
    believe();
  }

  /// What is seen was foreseen, and leaves less to be foreseen.
  void look() {
    if (held_.empty() || topology_->enforced()) return;
    if (below(2) == 0) {
      const AllocationId id = held_[static_cast<std::size_t>(below(static_cast<int>(held_.size())))];
      if (got_[id] == 0) return;
      const auto seen = cluster_.observe_devices(id, placement::device_set(got_[id]));
      RC_ASSERT(seen.ok());
      RC_ASSERT(*seen != placement::Observed::kMismatch);
    } else {
      std::map<int, int> counts;
      for (const GpuMask alike : topology_->numa_classes()) {
        counts[std::countr_zero(topology_->numa_of(std::countr_zero(alike)))] =
            std::popcount(agent_->held_gpus() & alike);
      }
      const auto seen = cluster_.observe_count(NodeId{0}, counts, held_);
      RC_ASSERT(seen.ok());
      RC_ASSERT(*seen != placement::Observed::kMismatch);
    }
    believe();
  }

  void leave() {
    if (held_.empty()) return;
    const auto at = static_cast<std::ptrdiff_t>(below(static_cast<int>(held_.size())));
    const AllocationId id = held_[static_cast<std::size_t>(at)];
    held_.erase(held_.begin() + at);
    RC_ASSERT(cluster_.release(id).ok());
    agent_->release(id);
    believe();
  }

 private:
  /// Where our choice is honoured, kubelet only has to be able to make it: it is tried until it does.
  std::optional<Hold> enforce(AllocationId id, const placement::PodAlignment& pod,
                              const placement::DeviceSet& devices) {
    for (int tries = 0; tries < 2000; ++tries) {
      const std::optional<Hold> got = agent_->admit(id, pod);
      if (!got || got->gpus == placement::gpu_mask(devices)) return got;
      agent_->release(id);
    }
    return std::nullopt;
  }

  /// The agent's state is among those that are believed.
  void believe() {
    RC_ASSERT(cluster_.check().ok());
    const NodeId node{0};
    const placement::Belief* belief = cluster_.belief_of(node);
    const GpuMask on_record = placement::held_gpus(cluster_.state_of(node));
    if (belief == nullptr) {
      RC_ASSERT(agent_->held_gpus() == on_record);
      RC_ASSERT(agent_->held_cpus().empty());
      return;
    }
    RC_ASSERT(std::popcount(agent_->held_gpus()) == std::popcount(on_record));
    if (!belief->complete) return;
    const GpuMask held =
        belief->by_numa ? placement::by_numa_class(*topology_, agent_->held_gpus()) : agent_->held_gpus();
    const bool found = std::any_of(belief->states.begin(), belief->states.end(), [&](const Hold& state) {
      return state.gpus == held && state.cpus == agent_->held_cpus();
    });
    RC_ASSERT(found);
  }

  Rng rng_;
  std::shared_ptr<const NodeTopology> topology_;
  placement::ClusterState cluster_;
  std::optional<test::NodeAgent> agent_;
  std::optional<placement::Engine> engine_;
  std::vector<AllocationId> held_;
  std::map<AllocationId, GpuMask> got_;
};

TEST(ForesightProperty, APlacedPodIsAdmittedAndGuaranteedWhateverTheNodeChooses) {
  test::for_all(2000, [] {
    Bed bed(any_world());
    const int events = 4 + below(16);
    for (int i = 0; i < events; ++i) {
      const int what = below(8);
      if (what < 2) {
        bed.leave();
      } else if (what < 4) {
        bed.look();
      } else {
        bed.arrive(i);
      }
    }
  });
}

}  // namespace
}  // namespace mortise::property
