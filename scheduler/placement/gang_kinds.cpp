#include "scheduler/placement/gang_kinds.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "scheduler/base/rng.h"

namespace mortise::placement {

namespace {
bool same_list(const NodeList& a, const NodeList& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a || (a->data() == b->data() && a->size() == b->size());
}
}  // namespace

std::size_t choice(const GangKind& kind) {
  return kind.like->allowed ? kind.like->allowed->size() : std::numeric_limits<std::size_t>::max();
}

std::vector<GangKind> gang_kinds(const GangRequest& request, ClusterState& cluster, std::uint64_t seed) {
  std::vector<GangKind> kinds;
  for (std::uint32_t r = 0; r < request.roles.size(); ++r) {
    const GangRole& role = request.roles[r];
    if (role.count == 0) continue;
    const ShapeId shape = cluster.intern(role.pod);
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const GangKind& known) {
      return known.member.shape == shape && same_list(known.like->allowed, role.allowed) &&
             same_list(known.like->eligible, role.eligible);
    });
    if (kind == kinds.end()) {
      kinds.push_back({{shape, mix64(seed ^ hash_text(role.pod.name))}, &role, {}, 0, 0, 1});
      kind = kinds.end() - 1;
      if (role.pod.gpus > 0) kind->weight = role.pod.gpus * role.pod.gpu_milli;
    }
    kind->roles.push_back(r);
    kind->count += role.count;
    kind->min += role.min;
  }
  std::sort(kinds.begin(), kinds.end(), [](const GangKind& a, const GangKind& b) {
    return std::tuple(b.weight, choice(a), b.like->pod.cpu, b.like->pod.memory, a.roles.front()) <
           std::tuple(a.weight, choice(b), a.like->pod.cpu, a.like->pod.memory, b.roles.front());
  });
  return kinds;
}

std::vector<KindMask> kind_masks(std::span<const GangKind> kinds, NodeList GangRole::*list, std::size_t nodes) {
  KindMask everywhere = 0;
  bool listed = false;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (kinds[k].like->*list) {
      listed = true;
    } else {
      everywhere |= KindMask{1} << k;
    }
  }
  if (!listed) return {};
  std::vector<KindMask> masks(nodes, everywhere);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const NodeList& allowed = kinds[k].like->*list;
    if (!allowed) continue;
    for (const NodeId node : *allowed) {
      if (node.index() < nodes) masks[node.index()] |= KindMask{1} << k;
    }
  }
  return masks;
}

}  // namespace mortise::placement
