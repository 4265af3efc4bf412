#include "scheduler/placement/predictor.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "scheduler/placement/plugin_choices.h"

namespace mortise::placement {
namespace {

using topology::ContainerOutcome;
using topology::ContainerRole;
using topology::IndexSet;
using topology::MemoryBlock;
using topology::NumaMask;
using topology::TopologyPolicy;

constexpr std::size_t kMaxRemembered = 1 << 16;

GpuMask mask_of(const IndexSet& devices) {
  GpuMask mask = 0;
  devices.for_each([&](std::size_t device) { mask |= GpuMask{1} << device; });
  return mask;
}

/// Calls f(set) for every set of `count` of these GPUs; false when f says to stop.
template <class F>
bool for_each_choice(GpuMask of, int count, GpuMask chosen, F& f) {
  if (count == 0) return f(chosen);
  for (GpuMask rest = of; std::popcount(rest) >= count; rest &= rest - 1) {
    const GpuMask first = rest & (~rest + 1);
    if (!for_each_choice(rest ^ first, count - 1, chosen | first, f)) return false;
  }
  return true;
}

/// What the containers' memory adds up to: an init container's is used again by the containers after it.
std::vector<MemoryBlock> memory_of(const PodAlignment& alignment, const std::vector<ContainerOutcome>& containers) {
  std::vector<MemoryBlock> blocks;
  std::map<NumaMask, Bytes> reusable;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const topology::ContainerAsk& ask = alignment.ask.containers[i];
    const NumaMask numa = containers[i].memory;
    if (numa == 0 || ask.memory.empty()) continue;
    const Bytes size = ask.memory.front().size;
    const Bytes more = std::max<Bytes>(0, size - reusable[numa]);
    if (more > 0) blocks.push_back({numa, 0, more});
    reusable[numa] =
        ask.role == ContainerRole::kInit ? std::max(size, reusable[numa]) : std::max<Bytes>(0, reusable[numa] - size);
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

NumaMask numa_of_memory(const std::vector<MemoryBlock>& blocks) {
  NumaMask nodes = 0;
  for (const MemoryBlock& block : blocks) nodes |= block.numa;
  return nodes;
}

/// Gathers what a pod may hold, and whether that is what it asks for.
class Gatherer {
 public:
  Gatherer(const NodeTopology& node, const PodAlignment& alignment, bool by_numa)
      : node_(node), alignment_(alignment), by_numa_(by_numa) {
    const TopologyPolicy policy = node.kubelet().policy;
    guarantees_ = alignment.at_least > policy ? alignment.at_least : TopologyPolicy::kNone;
    least_width_ = guarantees_ != TopologyPolicy::kNone ? node.least_numa_width(alignment.gpus) : 0;
  }

  void add(const topology::Outcome& outcome) {
    Hold hold;
    std::vector<topology::SomeDevices> open;
    for (const ContainerOutcome& container : outcome.containers) {
      hold.cpus |= container.cpus;
      for (const topology::DeviceGrant& grant : container.devices) {
        hold.gpus |= mask_of(grant.exact);
        open.insert(open.end(), grant.some.begin(), grant.some.end());
      }
    }
    hold.memory = memory_of(alignment_, outcome.containers);
    fill(std::move(hold), open, 0);
  }

  bool failed() const { return failed_; }

  Prediction result() {
    if (failed_ || found_.empty()) return {Reason::kTopologyGuarantee, {}};
    Prediction prediction;
    prediction.holds.by_numa = by_numa_;
    prediction.holds.complete = complete_;
    if (complete_) prediction.holds.options.assign(found_.begin(), found_.end());
    return prediction;
  }

 private:
  void fill(Hold hold, const std::vector<topology::SomeDevices>& open, std::size_t at) {
    if (failed_ || (!complete_ && guarantees_ == TopologyPolicy::kNone && !alignment_.nvlink_required)) return;
    if (at == open.size()) {
      take(std::move(hold));
      return;
    }
    auto choose = [&](GpuMask chosen) {
      Hold next = hold;
      next.gpus |= by_numa_ ? by_numa_class(node_, chosen) : chosen;
      fill(std::move(next), open, at + 1);
      return !failed_;
    };
    for_each_choice(mask_of(open[at].of), static_cast<int>(open[at].count), 0, choose);
  }

  void take(Hold hold) {
    if (!meets(hold)) {
      // Where we choose, one set that meets it is enough.
      failed_ = failed_ || !node_.enforced();
      return;
    }
    if (by_numa_) hold.gpus = by_numa_class(node_, hold.gpus);
    if (complete_) found_.insert(std::move(hold));
    complete_ = found_.size() <= kMaxStates;
  }

  bool meets(const Hold& hold) const {
    if (alignment_.nvlink_required && alignment_.gpus > 1) {
      if (by_numa_ ? !node_.always_nvlinked(alignment_.gpus) : !node_.nvlinked(hold.gpus)) return false;
    }
    if (guarantees_ != TopologyPolicy::kSingleNumaNode && guarantees_ != TopologyPolicy::kRestricted) return true;
    const NumaMask pinned = node_.numa_of_cpus(hold.cpus) | numa_of_memory(hold.memory);
    if (hold.gpus == 0 && pinned == 0) return true;
    const int width = node_.numa_width(hold.gpus, pinned);
    if (guarantees_ == TopologyPolicy::kSingleNumaNode) return width == 1;
    return width != 0 && width <= std::max(least_width_, node_.least_numa_width_of_cpus(hold.cpus.count()));
  }

  const NodeTopology& node_;
  const PodAlignment& alignment_;
  bool by_numa_;
  TopologyPolicy guarantees_ = TopologyPolicy::kNone;  // what kubelet does not see to itself
  int least_width_ = 0;
  std::set<Hold> found_;
  bool complete_ = true;
  bool failed_ = false;
};

}  // namespace

topology::NodeState& Predictor::node_in(TopologyId id, const NodeTopology& node, const Hold& state, bool by_numa) {
  std::unique_ptr<Scratch>& scratch = scratch_[id];
  if (!scratch) {
    scratch = std::make_unique<Scratch>(Scratch{node.empty_node(), node.empty_node()});
    for (topology::Device& device : scratch->alike.devices.front().devices) device.alike = 0;
  }
  topology::NodeState& now = by_numa ? scratch->alike : scratch->node;
  std::vector<topology::Device>& devices = now.devices.front().devices;
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i].allocated = (state.gpus >> i & 1) != 0;
  now.shared_cpus = node.empty_node().shared_cpus - state.cpus;
  now.memory = node.empty_node().memory;
  for (const MemoryBlock& block : state.memory) topology::take_memory(now.memory, block);
  return now;
}

Prediction Predictor::predict_in(TopologyId id, const NodeTopology& node, const Hold& state, bool by_numa,
                                 const PodAlignment& alignment) {
  const topology::NodeState& now = node_in(id, node, state, by_numa);
  Gatherer gatherer(node, alignment, by_numa);
  PluginChoices choices(node, by_numa || node.enforced());
  do {
    choices.restart();
    const auto admission = manager_.admit(now, node.kubelet(), alignment.ask, choices.preference());
    if (!admission) return {Reason::kTopologyAffinity, {}};
    if (!admission->complete) return too_many(id, node, state, by_numa, alignment);
    for (const topology::Outcome& outcome : admission->outcomes) {
      if (!outcome.admit) return {Reason::kTopologyAffinity, {}};
      gatherer.add(outcome);
    }
  } while (!gatherer.failed() && choices.next());
  if (choices.too_many()) return too_many(id, node, state, by_numa, alignment);
  return gatherer.result();
}

/// More outcomes than are looked at: those that differ only in GPUs of one NUMA class become one.
Prediction Predictor::too_many(TopologyId id, const NodeTopology& node, const Hold& state, bool by_numa,
                               const PodAlignment& alignment) {
  if (by_numa) return {Reason::kTopologyState, {}};
  Hold summed = state;
  summed.gpus = by_numa_class(node, state.gpus);
  return predict_in(id, node, summed, true, alignment);
}

Prediction Predictor::of_belief(TopologyId id, const NodeTopology& node, const Belief& belief,
                                const PodAlignment& alignment) {
  Prediction all;
  std::vector<Holds> each;
  for (const Hold& state : belief.states) {
    Prediction one = predict_in(id, node, state, belief.by_numa, alignment);
    if (one.reason != Reason::kNone) return one;
    all.holds.by_numa = all.holds.by_numa || one.holds.by_numa;
    all.holds.complete = all.holds.complete && one.holds.complete;
    each.push_back(std::move(one.holds));
  }
  std::set<Hold> options;
  for (const Holds& holds : each) {
    const Holds alike = all.holds.by_numa ? by_numa_class(node, holds) : holds;
    options.insert(alike.options.begin(), alike.options.end());
  }
  if (options.size() > kMaxStates) all.holds.complete = false;
  if (all.holds.complete) all.holds.options.assign(options.begin(), options.end());
  return all;
}

const Prediction& Predictor::predict(TopologyId id, const NodeTopology& node, BeliefId belief_id, const Belief* belief,
                                     GpuMask held, AlignmentId alignment_id, const PodAlignment& alignment) {
  if (known_.size() >= kMaxRemembered) known_.clear();
  const auto [entry, added] =
      known_.try_emplace(Key{id, belief_id, belief == nullptr ? held : 0, alignment_id}, Prediction{});
  if (!added) return entry->second;
  Prediction& prediction = entry->second;
  if (belief == nullptr) {
    prediction = predict_in(id, node, {held, {}, {}}, false, alignment);
  } else if (belief->complete) {
    prediction = of_belief(id, node, *belief, alignment);
  } else {
    prediction.holds.complete = false;
    const bool linked = !alignment.nvlink_required || node.always_nvlinked(alignment.gpus);
    if (node.managed() || alignment.at_least > node.kubelet().policy || !linked) {
      prediction.reason = Reason::kTopologyState;
    }
  }
  if (prediction.reason == Reason::kNone || node.managed() || alignment.wants_guarantee()) return prediction;
  prediction.reason = Reason::kNone;
  prediction.holds = {{}, false, false};
  return prediction;
}

}  // namespace mortise::placement
