#include "scheduler/placement/gang_rooms.h"

#include <algorithm>

namespace mortise::placement {

GangRooms::GangRooms(const ClusterState& cluster, const Domains& domains, NodeRoom& node_room,
                     std::vector<KindMask> allowed, std::vector<std::int64_t> weights, const Mix& cap, View view)
    : cluster_(cluster),
      domains_(domains),
      node_room_(node_room),
      allowed_(std::move(allowed)),
      weights_(std::move(weights)),
      sums_(cap),
      view_(view),
      entry_of_(cluster.node_count(), 0),
      tallies_(domains.domain_slots()) {
  intern({{Mix{}}, {}, 0});
}

std::int64_t GangRooms::weight(const Mix& mix) const {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < weights_.size(); ++k) sum += weights_[k] * mix.of[k];
  return sum;
}

std::uint32_t GangRooms::intern(Room room) {
  const auto [found, fresh] = room_ids_.try_emplace(std::move(room), static_cast<std::uint32_t>(rooms_.size()));
  if (!fresh) return found->second;
  rooms_.push_back(found->first);
  counts_.push_back(0);
  return found->second;
}

/// Where not every mix is known: no more GPUs than are free, and of pods without GPUs what there is of each alone.
std::int64_t GangRooms::most_weight(const NodeTrial& node, const NodeRoom::Room& room) const {
  std::int64_t most = 0;
  if (room.exact) {
    for (const Mix& mix : room.mixes) most = std::max(most, weight(mix));
    return most;
  }
  for (std::size_t k = 0; k < weights_.size(); ++k) {
    if (node_room_.shape(k).gpus == 0) most += weights_[k] * room.alone.of[k];
  }
  return most + node.state().milli_free();
}

NodeTrial GangRooms::trial(NodeId node) const {
  return view_ == View::kNow ? NodeTrial(cluster_, node) : NodeTrial::empty(cluster_, cluster_.state_of(node).machine);
}

std::uint32_t GangRooms::look_at(NodeId node) {
  const KindMask kinds = allowed_.empty() ? (KindMask{1} << weights_.size()) - 1 : allowed_[node.index()];
  if (kinds == 0) return 0;
  const std::uint32_t like =
      view_ == View::kNow ? cluster_.node_state(node).value : cluster_.state_of(node).machine.value;
  const auto [found, fresh] = known_.try_emplace(std::uint64_t{like} << 32 | kinds, 0);
  if (!fresh) return found->second;
  const NodeTrial here = trial(node);
  NodeRoom::Room room = node_room_.room(here, kinds, sums_);
  const std::int64_t most = most_weight(here, room);
  found->second = intern({std::move(room.mixes), room.alone, most});
  return found->second;
}

void GangRooms::add(std::uint32_t room, std::uint32_t nodes) {
  if (counts_[room] == 0) counted_.push_back(room);
  counts_[room] += nodes;
}

void GangRooms::measure(DomainId top) {
  const Domains::Domain& domain = domains_.domain(top);
  for (const auto& [name, child] : domain.children) measure(child);
  counted_.clear();
  for (const auto& [name, child] : domain.children) {
    for (const auto& [room, nodes] : tallies_[child.index()].nodes) add(room, nodes);
  }
  for (const NodeId node : domain.nodes) {
    entry_of_[node.index()] = look_at(node);
    add(entry_of_[node.index()], 1);
  }
  std::sort(counted_.begin(), counted_.end());
  Tally& tally = tallies_[top.index()];
  tally = {true};
  for (const std::uint32_t room : counted_) {
    if (room != 0) tally.nodes.emplace_back(room, counts_[room]);
    counts_[room] = 0;
  }
}

/// Many domains have as many nodes with this room.
const Mixes& GangRooms::of_alike(std::uint32_t room, std::uint32_t nodes) {
  if (nodes == 1) return rooms_[room].mixes;
  const auto [found, fresh] = of_alike_.try_emplace({room, nodes});
  if (fresh) found->second = sums_.times(rooms_[room].mixes, nodes);
  return found->second;
}

const Mixes& GangRooms::of(DomainId domain) {
  Tally& tally = tallies_[domain.index()];
  if (!tally.mixes.empty()) return tally.mixes;
  tally.mixes = {Mix{}};
  for (const auto& [room, nodes] : tally.nodes) tally.mixes = sums_.sum(tally.mixes, of_alike(room, nodes));
  return tally.mixes;
}

Mix GangRooms::alone(DomainId domain) const {
  std::array<std::uint64_t, kMaxKinds> sums{};
  for (const auto& [room, nodes] : tallies_[domain.index()].nodes) {
    for (std::size_t k = 0; k < kMaxKinds; ++k) sums[k] += std::uint64_t{rooms_[room].alone.of[k]} * nodes;
  }
  Mix found;
  for (std::size_t k = 0; k < kMaxKinds; ++k) {
    found.of[k] = static_cast<std::uint16_t>(std::min<std::uint64_t>(sums[k], sums_.cap().of[k]));
  }
  return found;
}

bool GangRooms::may_hold(DomainId domain, const Mix& members) const {
  std::int64_t most = 0;
  for (const auto& [room, nodes] : tallies_[domain.index()].nodes) most += rooms_[room].weight * nodes;
  return most >= weight(members) && alone(domain).covers(members);
}

bool GangRooms::a_node_holds(const Mix& members) const {
  return std::any_of(rooms_.begin(), rooms_.end(), [&](const Room& room) {
    return std::any_of(room.mixes.begin(), room.mixes.end(), [&](const Mix& mix) { return mix.covers(members); });
  });
}

Mix GangRooms::most_on_a_node() const {
  Mix most;
  for (const Room& room : rooms_) {
    for (std::size_t k = 0; k < kMaxKinds; ++k) most.of[k] = std::max(most.of[k], room.alone.of[k]);
  }
  return most;
}

void GangRooms::give_up(NodeId node) {
  if (allowed_.empty()) allowed_.assign(cluster_.node_count(), (KindMask{1} << weights_.size()) - 1);
  allowed_[node.index()] = 0;
  for (int level = domains_.node_level() - 1; level >= Domains::kCluster; --level) {
    tallies_[domains_.domain_of(node, level).index()] = {};
  }
}

}  // namespace mortise::placement
