#include "scheduler/placement/node_room.h"

#include <algorithm>
#include <utility>

namespace mortise::placement {

namespace {
// Of one node; when the plan's steps are used up, a node still gets a few.
constexpr int kNodeSteps = 4096;
constexpr int kLastNodeSteps = 64;
}  // namespace

DeviceSet NodeRoom::first_choice(const NodeTrial& node, std::size_t kind) const {
  const PodShape& pod = shape(kind);
  if (!pod.is_share()) return cluster_.choose_devices(node.state(), pod, policy_.device_objective());
  DeviceSet devices;
  const Machine& machine = node.machine();
  devices.insert(policy_.share_device({node.state(), machine, cluster_.topology_of(machine)}, pod, kinds_[kind].draw));
  return devices;
}

/// The policy's choice; where it matters, then one device for every other amount left.
std::vector<DeviceSet> NodeRoom::choices(const NodeTrial& node, std::size_t kind) const {
  std::vector<DeviceSet> found = {first_choice(node, kind)};
  const PodShape& pod = shape(kind);
  if (!branches_ || !pod.is_share()) return found;
  const auto free = node.state().free_devices();
  std::set<std::int16_t> amounts;
  found.front().for_each([&](int device) { amounts.insert(free[static_cast<std::size_t>(device)]); });
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (free[i] < pod.gpu_milli || !amounts.insert(free[i]).second) continue;
    found.emplace_back();
    found.back().insert(static_cast<int>(i));
  }
  return found;
}

bool NodeRoom::spend() {
  ++steps_;
  if (--steps_left_ < 0 ? steps_ <= kLastNodeSteps : steps_ <= kNodeSteps) return true;
  exact_ = false;
  return false;
}

/// The same members on devices with the same rest came up before, by another way.
bool NodeRoom::once(std::size_t at, const Mix& mix, const NodeTrial& node) {
  if (!branches_) return true;
  const auto free = node.state().free_devices();
  std::vector<std::int16_t> rests(free.begin(), free.end());
  std::sort(rests.begin(), rests.end());
  return seen_.insert({at, mix, std::move(rests)}).second;
}

void NodeRoom::explore(const NodeTrial& node, std::size_t at, Mix& mix) {
  if (at == order_.size()) {
    found_.push_back(mix);
    return;
  }
  const std::size_t kind = order_[at];
  std::uint16_t& count = mix.of[kind];
  if (at + 1 == order_.size()) {
    // Which devices the last kind takes does not matter to anyone after it.
    NodeTrial rest = node;
    const std::uint16_t before = count;
    for (; count < cap_.of[kind] && rest.fits(shape(kind)); ++count)
      rest.take(kinds_[kind].shape, first_choice(rest, kind));
    found_.push_back(mix);
    count = before;
    return;
  }
  if (count < cap_.of[kind] && node.fits(shape(kind))) {
    for (const DeviceSet& devices : choices(node, kind)) {
      NodeTrial next = node;
      next.take(kinds_[kind].shape, devices);
      ++count;
      if (once(at, mix, next) && spend()) explore(next, at, mix);
      --count;
    }
  }
  explore(node, at + 1, mix);
}

/// One kind after the other in their order, from this one on and round.
Mix NodeRoom::fill(NodeTrial node, std::size_t first) const {
  Mix mix;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::size_t kind = order_[(first + i) % order_.size()];
    for (; mix.of[kind] < cap_.of[kind] && node.fits(shape(kind)); ++mix.of[kind]) {
      node.take(kinds_[kind].shape, first_choice(node, kind));
    }
  }
  return mix;
}

/// One of each kind in turn, until none fits.
Mix NodeRoom::fill_evenly(NodeTrial node) const {
  Mix mix;
  for (bool more = true; more;) {
    more = false;
    for (const std::size_t kind : order_) {
      if (mix.of[kind] >= cap_.of[kind] || !node.fits(shape(kind))) continue;
      node.take(kinds_[kind].shape, first_choice(node, kind));
      ++mix.of[kind];
      more = true;
    }
  }
  return mix;
}

NodeRoom::Room NodeRoom::room(const NodeTrial& node, KindMask allowed, MixSums& sums) {
  order_.clear();
  bool shares = false;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if ((allowed >> k & 1) == 0 || sums.cap().of[k] == 0 || !node.fits(shape(k))) continue;
    order_.push_back(k);
    shares = shares || shape(k).is_share();
  }
  branches_ = shares && order_.size() > 1;
  steps_ = 0;
  cap_ = sums.cap();
  seen_.clear();
  found_.clear();
  Mix none;
  const bool exact_before = std::exchange(exact_, true);
  explore(node, 0, none);
  Room room;
  room.exact = sums.keep_largest(found_) && exact_;
  exact_ = exact_ && exact_before;
  if (room.exact) {
    for (const Mix& mix : found_) room.alone = larger(room.alone, mix);
  } else {
    // What was tried begins with the first kinds, so something of each other kind is added.
    for (std::size_t i = 0; i < order_.size(); ++i) {
      found_.push_back(fill(node, i));
      room.alone.of[order_[i]] = found_.back().of[order_[i]];
    }
    found_.push_back(fill_evenly(node));
    sums.keep_largest(found_);
  }
  room.mixes = found_;
  return room;
}

bool NodeRoom::settle(const NodeTrial& node, std::size_t at, Mix& rest) {
  while (at < order_.size() && rest.of[order_[at]] == 0) ++at;
  if (at == order_.size()) return true;
  const std::size_t kind = order_[at];
  if (!node.fits(shape(kind))) return false;
  for (const DeviceSet& devices : choices(node, kind)) {
    NodeTrial next = node;
    next.take(kinds_[kind].shape, devices);
    --rest.of[kind];
    places_.push_back({kind, devices});
    if (once(at, rest, next) && spend() && settle(next, at, rest)) return true;
    places_.pop_back();
    ++rest.of[kind];
  }
  return false;
}

std::optional<std::vector<NodeRoom::Place>> NodeRoom::arrange(const NodeTrial& node, const Mix& wanted) {
  order_.clear();
  bool shares = false;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (wanted.of[k] == 0) continue;
    order_.push_back(k);
    shares = shares || shape(k).is_share();
  }
  branches_ = shares && order_.size() > 1;
  steps_ = 0;
  seen_.clear();
  places_.clear();
  Mix rest = wanted;
  if (!settle(node, 0, rest)) return std::nullopt;
  return places_;
}

}  // namespace mortise::placement
