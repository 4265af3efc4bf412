#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/placement/domains.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/gang_planner.h"
#include "scheduler/placement/preemption.h"

namespace mortise::placement {

/// A cluster for tests of gangs: nodes in domains, some of their GPUs taken.
class GangCluster {
 public:
  explicit GangCluster(std::vector<TopologyLevel> levels, const std::string& policy = "best-fit")
      : domains(cluster, std::move(levels)), policy_(*make_policy(policy, TypicalPods())) {}

  /// `place` names the domains from the coarsest level on, "b1/r2".
  NodeId node(const std::string& name, const std::string& place, int free_gpus, int gpus = 8) {
    NodeSpec spec{name, 64'000, std::int64_t{512} << 30, 110, gpus, "A100"};
    return node(spec, place, free_gpus);
  }
  NodeId node(const NodeSpec& spec, const std::string& place, int free_gpus) {
    const NodeId id = *cluster.add_node(spec, cluster.node_count());
    std::vector<Label> labels;
    std::size_t at = 0;
    for (std::size_t l = 0; l < levels() && at <= place.size() && !place.empty(); ++l) {
      const std::size_t end = std::min(place.find('/', at), place.size());
      labels.emplace_back(domains.levels()[l].key, place.substr(at, end - at));
      at = end + 1;
    }
    domains.set_node(id, labels);
    if (free_gpus < spec.gpus) take(id, spec.gpus - free_gpus);
    return id;
  }
  std::size_t levels() const { return domains.levels().size(); }

  /// A pod that was there before, on the last GPUs.
  void take(NodeId id, int gpus) {
    PodRequest pod;
    pod.gpus = gpus;
    DeviceSet devices;
    for (int d = 0, left = gpus; d < cluster.state_of(id).devices && left > 0; ++d) {
      const int device = cluster.state_of(id).devices - 1 - d;
      if (cluster.state_of(id).free[static_cast<std::size_t>(device)] < kWholeGpu) continue;
      devices.insert(device);
      --left;
    }
    ASSERT_TRUE(cluster.apply(cluster.intern(pod), id, devices).ok());
  }

  static PodRequest pod(int gpus, MilliCpu cpu = 0, MilliGpu milli = kWholeGpu) {
    PodRequest request;
    request.name = "member";
    request.gpus = gpus;
    request.cpu = cpu;
    request.gpu_milli = milli;
    return request;
  }
  static GangRole role(const std::string& name, int count, const PodRequest& pod) {
    GangRole made;
    made.name = name;
    made.pod = pod;
    made.count = count;
    made.min = count;
    return made;
  }
  static GangRequest gang(int count, int gpus, const std::string& required = "", const std::string& preferred = "") {
    GangRequest request;
    request.roles = {role("worker", count, pod(gpus))};
    request.required_level = required;
    request.preferred_level = preferred;
    return request;
  }

  /// Plans, and looks that nothing changed and that what is planned can be taken, all of it.
  GangDecision plan(const GangRequest& request) {
    const std::uint64_t version = cluster.version();
    GangDecision decision = GangPlanner(cluster, domains, *policy_, 1).plan(request);
    EXPECT_EQ(cluster.version(), version);
    if (const auto* made = std::get_if<GangPlan>(&decision)) {
      const ClusterState::Mark mark = cluster.mark();
      for (const GangMember& member : made->members) {
        // In the order of the plan each member is one that the node takes, kubelet's part in it included.
        const ShapeId shape = cluster.intern(request.roles[member.role].pod);
        EXPECT_EQ(node_reason(cluster, member.node, shape), Reason::kNone);
        const auto applied = cluster.apply(shape, member.node, member.devices, Knowledge::kPredicted);
        EXPECT_TRUE(applied.ok()) << applied.message();
      }
      EXPECT_TRUE(cluster.check().ok());
      cluster.undo(mark);
    }
    EXPECT_TRUE(cluster.check().ok());
    return decision;
  }

  using Counts = std::map<std::string, int>;
  /// Members by node; the reason when it was refused, with -1.
  Counts nodes(const GangRequest& request) {
    const GangDecision decision = plan(request);
    if (const auto* rejected = std::get_if<GangRejected>(&decision)) {
      return {{std::string(reason_name(rejected->reason)) + ": " + rejected->detail, -1}};
    }
    Counts found;
    for (const GangMember& member : std::get<GangPlan>(decision).members) ++found[cluster.node_name(member.node)];
    return found;
  }

  ClusterState cluster;
  Domains domains;

 private:
  std::unique_ptr<Policy> policy_;
};

inline GangPlan planned(GangCluster& on, const GangRequest& request) {
  const GangDecision decision = on.plan(request);
  EXPECT_TRUE(std::holds_alternative<GangPlan>(decision));
  return std::get<GangPlan>(decision);
}
inline GangRejected refused(GangCluster& on, const GangRequest& request) {
  const GangDecision decision = on.plan(request);
  EXPECT_TRUE(std::holds_alternative<GangRejected>(decision));
  return std::get<GangRejected>(decision);
}

}  // namespace mortise::placement
