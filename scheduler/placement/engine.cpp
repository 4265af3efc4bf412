#include "scheduler/placement/engine.h"

#include <algorithm>
#include <tuple>

#include "scheduler/base/rng.h"
#include "scheduler/placement/shape_index.h"

namespace mortise::placement {

namespace {
// Shapes asked for least recently lose their index beyond this many; it is rebuilt when they come again. An index takes
// about 100 bytes for each state, so on a cluster of many states fewer are kept.
constexpr std::size_t kKeptIndexes = 1024;
constexpr std::size_t kIndexedStates = kKeptIndexes << 12;

using ReasonCounts = std::array<std::int64_t, kReasonCount>;

Reason most_frequent(const ReasonCounts& counts) {
  const auto best = std::max_element(counts.begin() + 1, counts.end());  // the first of equals
  if (best == counts.end() || *best == 0) return Reason::kInvalidRequest;
  return static_cast<Reason>(best - counts.begin());
}
}  // namespace

struct Engine::Impl {
  ClusterState& cluster;
  std::unique_ptr<Policy> policy;
  std::uint64_t seed;
  struct Entry {
    std::unique_ptr<ShapeIndex> index;
    std::uint64_t used = 0;
  };
  std::vector<Entry> by_shape{};
  std::size_t kept = 0;
  std::uint64_t asks = 0;

  ShapeIndex& index_of(ShapeId shape) {
    if (shape.index() >= by_shape.size()) by_shape.resize(cluster.shapes().size());
    Entry& entry = by_shape[shape.index()];
    entry.used = ++asks;
    if (entry.index) {
      entry.index->refresh();
    } else {
      entry.index = std::make_unique<ShapeIndex>(cluster, *policy, shape);
      ++kept;
      while (kept > most_kept()) drop_oldest();
    }
    return *entry.index;
  }

  std::size_t most_kept() const {
    const std::size_t states = std::max<std::size_t>(cluster.states().slot_count(), 1);
    return std::clamp<std::size_t>(kIndexedStates / states, 1, kKeptIndexes);
  }

  void drop_oldest() {
    Entry* oldest = nullptr;
    for (Entry& entry : by_shape) {
      if (entry.index && (oldest == nullptr || entry.used < oldest->used)) oldest = &entry;
    }
    oldest->index.reset();
    --kept;
  }

  /// Uniform bits for one pod: a function of seed and name only, so asking again gives the same answer.
  std::uint64_t draw(const PodRequest& pod) const { return mix64(seed ^ hash_text(pod.name)); }

  /// The order of a node in a random choice: each node its own draw, so the choice does not depend on how, or
  /// among which infeasible others, the nodes are listed.
  std::uint64_t random_order(std::uint64_t pod_draw, NodeId node) const {
    return mix64(pod_draw ^ cluster.node_rank(node));
  }

  Placed place(const PodRequest& pod, const PodShape& shape, NodeId node, Score score) const {
    const NodeState& state = cluster.state_of(node);
    Placed placed{node, {}, score};
    if (shape.is_share()) {
      const Machine& machine = cluster.machine(state.machine);
      placed.devices.insert(policy->share_device({state, machine, cluster.topology_of(machine)}, shape, draw(pod)));
    } else {
      placed.devices = cluster.choose_devices(state, shape, policy->device_objective());
    }
    return placed;
  }

  NodeId random_best(const ShapeIndex& index, const PodRequest& pod) const {
    const std::uint64_t pod_draw = draw(pod);
    std::tuple<std::uint64_t, NodeId> best{~std::uint64_t{0}, NodeId{~std::uint32_t{0}}};
    index.for_each_best([&](StateId id) {
      for (const NodeId node : cluster.states().members(id)) {
        best = std::min(best, std::tuple(random_order(pod_draw, node), node));
      }
    });
    return std::get<1>(best);
  }
};

Engine::Engine(ClusterState& cluster, std::unique_ptr<Policy> policy, std::uint64_t seed)
    : impl_(new Impl{cluster, std::move(policy), seed}) {}
Engine::~Engine() = default;

Decision Engine::plan(const PodRequest& pod) {
  const ShapeId shape = impl_->cluster.intern(pod);
  const ShapeIndex& index = impl_->index_of(shape);
  if (index.best().key < 0) return Rejected{most_frequent(index.nodes_by_reason())};
  const bool random = impl_->policy->tie_rule() == TieRule::kRandom;
  const NodeId node = random ? impl_->random_best(index, pod) : index.best().node;
  return impl_->place(pod, impl_->cluster.shapes().shape(shape), node, ShapeIndex::score_of(index.best().key));
}

Decision Engine::plan(const PodRequest& pod, std::span<const NodeId> candidates, std::vector<NodeAnswer>* answers) {
  const ShapeId shape = impl_->cluster.intern(pod);
  const ShapeIndex& index = impl_->index_of(shape);
  const bool random = impl_->policy->tie_rule() == TieRule::kRandom;
  const std::uint64_t pod_draw = impl_->draw(pod);
  ReasonCounts counts{};
  ShapeIndex::Key best_key = -1;
  std::tuple<std::uint64_t, NodeId> best;
  for (const NodeId node : candidates) {
    const StateId state = impl_->cluster.node_state(node);
    const ShapeIndex::Key key = index.key(state);
    const Reason reason = index.reason(state);
    ++counts[static_cast<std::size_t>(reason)];
    if (answers != nullptr) answers->push_back({node, reason, key < 0 ? 0 : ShapeIndex::score_of(key)});
    if (key < 0 || key < best_key) continue;
    const std::uint64_t order = random ? impl_->random_order(pod_draw, node) : impl_->cluster.node_rank(node);
    const std::tuple mine(order, node);
    if (key > best_key || mine < best) best = mine;
    best_key = key;
  }
  if (best_key < 0) return Rejected{most_frequent(counts)};
  return impl_->place(pod, impl_->cluster.shapes().shape(shape), std::get<1>(best), ShapeIndex::score_of(best_key));
}

Result<AllocationId> Engine::commit(const PodRequest& pod, const Placed& placed, Knowledge knowledge) {
  return impl_->cluster.apply(impl_->cluster.intern(pod), placed.node, placed.devices, knowledge);
}

std::optional<topology::Objective> Engine::device_objective() const {
  return impl_->policy->device_objective();
}

std::array<std::int64_t, kReasonCount> Engine::reasons(const PodRequest& pod) {
  return impl_->index_of(impl_->cluster.intern(pod)).nodes_by_reason();
}

}  // namespace mortise::placement
