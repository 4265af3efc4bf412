#include "sim/decision_replay.h"

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/bound_pods.h"
#include "scheduler/kube/objects/cluster_file.h"
#include "scheduler/kube/objects/live_node.h"
#include "scheduler/placement/device_list.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/policy.h"
#include "sim/decision_log.h"
#include "sim/workload.h"
#include "traces/formats.h"
#include "traces/synth.h"

namespace mortise::sim {
namespace {

using placement::ClusterState;
using placement::DeviceSet;
using placement::Engine;
using placement::Knowledge;
using placement::Placed;

class Repeat {
 public:
  Repeat(ClusterState& cluster, Engine& engine, const DecisionReplaySpec& spec)
      : cluster_(cluster),
        engine_(engine),
        seed_(spec.seed),
        catalogue_(spec.catalogue),
        topologies_(catalogue_, notes_) {
    cluster_.expect_topologies();  // as the extender does
  }

  Status operator()(const NodeSeen& event) {
    const placement::NodeSpec spec = kube::live_node_spec(event.node, nullptr, topologies_, notes_);
    if (const auto known = cluster_.find_node(spec.name)) return cluster_.update_node(*known, spec);
    const auto added = cluster_.add_node(spec, kube::seeded_rank(seed_, spec.name));
    return added ? ok_status() : Status(added.error());
  }

  Status operator()(const NodeGone& event) {
    const auto node = cluster_.find_node(event.name);
    if (!node) return Error{"node " + quote(event.name) + " is not in the cluster"};
    std::erase_if(held_, [&](const auto& pod) {
      if (pod.second.node != event.name) return false;
      (void)cluster_.release(pod.second.allocation);
      return true;
    });
    return cluster_.remove_node(*node);
  }

  Status operator()(const PodDecided& event) {
    if (held_.contains(event.pod.uid)) return Error{"pod " + quote(event.pod.uid) + " has a place already"};
    ++result_.decisions;
    const placement::Decision decision = plan(event);
    const auto* placed = std::get_if<Placed>(&decision);
    if (placed == nullptr) {
      ++result_.not_placed;
      differs(event, {}, {});
      return ok_status();
    }
    const auto committed = engine_.commit(event.pod, *placed, Knowledge::kPredicted);
    if (!committed) return committed.error();
    const std::string& node = cluster_.node_name(placed->node);
    held_.insert_or_assign(event.pod.uid, Held{node, *committed});
    if (node != event.node) {
      ++result_.other_node;
    } else if (placed->devices != event.devices) {
      ++result_.other_devices;
    } else {
      ++result_.same;
      return ok_status();
    }
    differs(event, node, placed->devices);
    return ok_status();
  }

  Status operator()(const PodBound& event) {
    if (held_.contains(event.pod.uid)) return Error{"pod " + quote(event.pod.uid) + " has a place already"};
    const auto node = cluster_.find_node(event.node);
    if (!node) return Error{"node " + quote(event.node) + " is not in the cluster"};
    const auto devices = kube::lowest_devices(cluster_.state_of(*node).free_devices(), event.pod);
    const auto adopted =
        cluster_.adopt(cluster_.intern(event.pod), *node, devices.value_or(DeviceSet{}), Knowledge::kUnknown);
    if (!adopted) return adopted.error();
    held_.insert_or_assign(event.pod.uid, Held{event.node, *adopted});
    return ok_status();
  }

  Status operator()(const PodEnded& event) {
    const auto pod = held_.find(event.uid);
    if (pod == held_.end()) return ok_status();  // it had no place here
    const AllocationId allocation = pod->second.allocation;
    held_.erase(pod);
    return cluster_.release(allocation);
  }

  DecisionReplayResult result() {
    result_.notes = notes_.lines();
    return std::move(result_);
  }

 private:
  struct Held {
    std::string node;
    AllocationId allocation;
  };

  placement::Decision plan(const PodDecided& event) {
    if (event.candidates.empty()) return engine_.plan(event.pod);
    std::vector<NodeId> candidates;
    for (const std::string& name : event.candidates) {
      if (const auto node = cluster_.find_node(name)) candidates.push_back(*node);
    }
    return engine_.plan(event.pod, candidates);
  }

  void differs(const PodDecided& event, const std::string& node, const DeviceSet& devices) {
    result_.differences.push_back({event.pod.ns + "/" + event.pod.name, event.node,
                                   placement::device_list(event.devices), node, placement::device_list(devices)});
  }

  ClusterState& cluster_;
  Engine& engine_;
  const std::uint64_t seed_;
  topology::LazyCatalogue catalogue_;
  kube::Notes notes_;
  kube::NodeTopologies topologies_;
  std::map<std::string, Held, std::less<>> held_;  // by UID
  DecisionReplayResult result_;
};

}  // namespace

Result<DecisionReplayResult> replay_decisions(const DecisionReplaySpec& spec) {
  Result<traces::Trace> trace = spec.typical.empty() ? traces::typical_sample() : traces::read_trace_file(spec.typical);
  if (!trace) return trace.error();
  const Workload workload(*std::move(trace));
  ClusterState cluster;
  const placement::TypicalPods typical(workload.classes(), cluster);
  auto policy = placement::make_policy(spec.policy, typical);
  if (!policy) return policy.error();
  Engine engine(cluster, *std::move(policy), spec.seed);
  Repeat repeat(cluster, engine, spec);
  const Status read = read_decision_log(
      spec.log, [&](const LogEvent& event) { return std::visit([&](const auto& e) { return repeat(e); }, event); });
  if (!read) return read.error();
  return repeat.result();
}

}  // namespace mortise::sim
