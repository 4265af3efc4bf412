#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/extender/gangs.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"

namespace mortise::extender {

/// Gangs on a cluster of racks, as kube-scheduler asks about their members.
class GangsTest : public testing::Test {
 protected:
  using Kind = GangAnswer::Kind;

  /// A node of a rack, with so many GPUs of eight free.
  void node(const std::string& name, const std::string& rack, int free = 8) {
    const NodeId id = *cluster_.add_node({name, 64'000, 512'000 * kMiB, 110, 8, "A100"}, cluster_.node_count());
    domains_.set_node(id, std::vector<placement::Label>{{"rack", rack}});
    if (free < 8) hold("filler-" + name, name, 8 - free);
  }
  /// A pod of no gang that is bound there.
  void hold(const std::string& uid, const std::string& on, int gpus) {
    const NodeId id = *cluster_.find_node(on);
    placement::DeviceSet devices;
    for (int d = 7; devices.size() < gpus; --d) {
      if (cluster_.state_of(id).free[static_cast<std::size_t>(d)] == kWholeGpu) devices.insert(d);
    }
    bookings_.bound(request(uid, gpus, 0), on, devices);
  }
  void release(const std::string& uid) {
    bookings_.ended(uid);
    gangs_.freed();
  }

  static placement::PodRequest request(const std::string& uid, int gpus, std::int32_t priority) {
    placement::PodRequest pod;
    pod.ns = "default";
    pod.name = pod.uid = uid;
    pod.gpus = gpus;
    pod.priority = priority;
    return pod;
  }
  static GangSpec gang(const std::string& key, std::int32_t minimum, const std::string& level = "") {
    GangSpec spec;
    spec.key = spec.name = key;
    spec.minimum = minimum;
    spec.required_level = level;
    return spec;
  }
  /// Members KEY-FROM to KEY-(TO-1).
  void members(const GangSpec& spec, int from, int to, int gpus, std::int32_t priority = 0) {
    for (int i = from; i < to; ++i) {
      gangs_.see(spec, {request(spec.key + "-" + std::to_string(i), gpus, priority), "", ""});
    }
  }
  GangAnswer ask(const std::string& uid) {
    std::vector<NodeId> all;
    for (std::uint32_t i = 0; i < cluster_.node_count(); ++i) all.push_back(NodeId{i});
    return gangs_.ask(uid, all);
  }
  /// Where kube-scheduler is sent; the reason when nowhere.
  std::string where(const std::string& uid) {
    const GangAnswer answer = ask(uid);
    return answer.kind == Kind::kPlace ? cluster_.node_name(answer.node) : answer.reason;
  }
  /// Asks and binds.
  std::string run(const std::string& uid) {
    const std::string node = where(uid);
    if (!cluster_.find_node(node)) return node;
    const std::string why = gangs_.start_bind(uid, node);
    if (!why.empty()) return why;
    bookings_.start_binding(uid);
    bookings_.bound(request(uid, bookings_.find(uid)->request.gpus, 0), node, {});
    return node;
  }
  void end(const std::string& uid) {
    gangs_.gone(uid);
    bookings_.ended(uid);
  }
  std::vector<std::string> woken() {
    gangs_.tick();
    std::vector<std::string> uids;
    while (const auto kick = gangs_.next_kick()) uids.push_back(kick->uid);
    return uids;
  }
  GangPhase phase(const std::string& key) const { return gangs_.phase(gangs_.gangs().find(key)->second); }

  const std::string kNoRoom{reason_text(placement::GangReason::kNoRoom)};
  ManualClock clock_;
  placement::ClusterState cluster_;
  Bookings bookings_{cluster_};
  placement::Domains domains_{cluster_, {{"rack", "rack"}}};
  std::unique_ptr<placement::Policy> policy_ = *placement::make_policy("best-fit", placement::TypicalPods());
  Gangs gangs_{bookings_, cluster_, domains_, *policy_, 1, clock_};
};

}  // namespace mortise::extender
