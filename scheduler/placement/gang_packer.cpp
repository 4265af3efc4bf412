#include "scheduler/placement/gang_packer.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace mortise::placement {

GangPacker::GangPacker(const ClusterState& cluster, const GangRooms& rooms, const NodeRoom& node_room,
                       std::span<const GangKind> kinds)
    : cluster_(cluster), rooms_(rooms), node_room_(node_room) {
  Order largest(kinds.size());
  std::iota(largest.begin(), largest.end(), std::size_t{0});
  Order scarcest = largest;
  std::stable_sort(scarcest.begin(), scarcest.end(),
                   [&](std::size_t a, std::size_t b) { return choice(kinds[a]) < choice(kinds[b]); });
  Order by_cpu = largest;
  std::stable_sort(by_cpu.begin(), by_cpu.end(),
                   [&](std::size_t a, std::size_t b) { return kinds[a].like->pod.cpu > kinds[b].like->pod.cpu; });
  for (Order* order : {&largest, &scarcest, &by_cpu}) {
    if (std::find(kind_orders_.begin(), kind_orders_.end(), *order) == kind_orders_.end()) {
      kind_orders_.push_back(std::move(*order));
    }
  }
}

/// To fill each node with the largest that it takes is to give each member, largest first, the first node.
GangPacker::Packed GangPacker::first_fit(std::span<const NodeId> nodes, const Order& kinds, const Mix& wanted) const {
  Packed packed;
  Mix rest = wanted;
  for (const NodeId node : nodes) {
    if (rest.empty()) break;
    if (smaller(rooms_.alone(node), rest).empty()) continue;
    const Mix here = rooms_.alone(node);
    NodeTrial trial = rooms_.trial(node);
    for (const std::size_t kind : kinds) {
      const PodShape& shape = node_room_.shape(kind);
      for (std::uint16_t most = here.of[kind]; most > 0 && rest.of[kind] > 0 && trial.fits(shape); --most) {
        const DeviceSet devices = node_room_.first_choice(trial, kind);
        trial.take(node_room_.shape_id(kind), devices);
        packed.seats.push_back({node, kind, devices});
        --rest.of[kind];
      }
    }
  }
  packed.members = difference(wanted, rest);
  return packed;
}

std::optional<GangPacker::Packed> GangPacker::pack(std::vector<NodeId> nodes, const Mix& wanted,
                                                   const Accept& accept) const {
  std::optional<Packed> best;
  const auto all_placed = [&] {  // with one of the orders of the kinds
    for (const Order& kinds : kind_orders_) {
      Packed packed = first_fit(nodes, kinds, wanted);
      if (!accept(packed.members)) continue;
      if (!best || best->members.total() < packed.members.total()) best = std::move(packed);
      if (best->members == wanted) return true;
    }
    return false;
  };
  if (all_placed() || nodes.size() < 2) return best;
  const auto rank = [&](NodeId node) { return std::pair(cluster_.node_rank(node), node); };
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return rank(a) < rank(b); });
  if (all_placed()) return best;
  const auto left = [&](NodeId node) {
    const NodeState state = rooms_.trial(node).state();
    return std::pair(state.milli_free(), state.cpu_free);
  };
  std::vector<std::pair<std::pair<MilliGpu, MilliCpu>, NodeId>> tightest;
  for (const NodeId node : nodes) tightest.emplace_back(left(node), node);
  std::stable_sort(tightest.begin(), tightest.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = tightest[i].second;
  (void)all_placed();
  return best;
}

}  // namespace mortise::placement
