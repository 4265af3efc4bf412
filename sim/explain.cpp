#include "sim/explain.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>
#include <variant>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/bound_pods.h"
#include "scheduler/placement/device_list.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/policy.h"
#include "scheduler/placement/preemption.h"
#include "sim/cluster_domains.h"
#include "traces/synth.h"

namespace mortise::sim {
namespace {

using placement::NodeAnswer;
using placement::NodeState;
using placement::PodRequest;
using placement::Reason;

constexpr std::size_t kShownNearest = 3;
constexpr const char* kHostname = "kubernetes.io/hostname";

/// What a node lacks of what a pod asks for.
struct Shortfall {
  std::int64_t gpus = 0;
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int64_t pods = 0;
};

Shortfall shortfall(const PodRequest& pod, const NodeState& state) {
  Shortfall lacks;
  if (pod.gpus > 0) {
    std::int64_t usable = 0;
    for (const std::int16_t free : state.free_devices()) usable += free >= pod.gpu_milli ? 1 : 0;
    lacks.gpus = std::max<std::int64_t>(pod.gpus - usable, 0);
  }
  lacks.cpu = std::max<MilliCpu>(pod.cpu - state.cpu_free, 0);
  lacks.memory = std::max<Bytes>(pod.memory - state.memory_free, 0);
  lacks.pods = state.pods_free > 0 ? 0 : 1;
  return lacks;
}

}  // namespace

Result<Explainer> Explainer::make(const ClusterInput& cluster, const std::string& policy, std::uint64_t seed) {
  Explainer made(cluster);
  auto state = kube::build_cluster(cluster.file, cluster.rank_table(), seed);
  if (!state) return state.error();
  made.cluster_ = *std::move(state);
  made.domains_ = std::make_unique<placement::Domains>(make_domains(*made.cluster_, cluster.file, cluster.levels));
  auto trace = traces::typical_sample();
  if (!trace) return trace.error();
  const Workload workload(*std::move(trace));
  const placement::TypicalPods typical(workload.classes(), *made.cluster_);
  auto of_pods = placement::make_policy(policy, typical);
  auto of_gangs = placement::make_policy(policy, typical);
  if (!of_pods || !of_gangs) return of_pods.error();
  made.policy_ = *std::move(of_gangs);
  made.engine_ = std::make_unique<placement::Engine>(*made.cluster_, *std::move(of_pods), seed);
  made.planner_ = std::make_unique<placement::GangPlanner>(*made.cluster_, *made.domains_, *made.policy_, seed);
  for (std::size_t i = 0; i < cluster.file.nodes.size(); ++i) {
    if (const auto node = made.cluster_->find_node(cluster.file.nodes[i].name)) made.file_node_[*node] = i;
  }
  // Allocations are numbered in the order in which the bound pods took their places.
  std::uint32_t next = 0;
  for (const std::size_t pod : kube::booking_order(cluster.file.pods)) {
    const AllocationId id{next++};
    made.bound_[made.cluster_->allocation(id)->node].emplace_back(id, pod);
  }
  return made;
}

Status Explainer::check(const Manifest& manifest) const {
  std::set<std::string> bound;
  for (const kube::BoundPod& pod : input_.file.pods)
    bound.insert(pod.request.ns + "/" + pod.request.name + "@" + pod.node);
  for (const ManifestPod& pod : manifest.pods) {
    if (pod.pod.node_name.empty() || bound.contains(pod.pod.key() + "@" + pod.pod.node_name)) continue;
    return Error{pod.where + "pod " + quote(pod.pod.key()) + " is on node " + quote(pod.pod.node_name) +
                 ", but the cluster does not have it there; allowed: a snapshot of nodes and pods that has it"};
  }
  return ok_status();
}

Explainer::NodeList Explainer::selected(const kube::Labels& selector) const {
  NodeList nodes;
  const kube::Labels none;
  for (const auto& [node, place] : file_node_) {
    const kube::Labels& labels = place < input_.file.labels.size() ? input_.file.labels[place] : none;
    const std::string& name = cluster_->node_name(node);
    const bool all = std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
      const auto label = labels.find(wanted.first);
      if (label != labels.end()) return label->second == wanted.second;
      return wanted.first == kHostname && wanted.second == name;
    });
    if (all) nodes.push_back(node);
  }
  return nodes;
}

Result<Answer> Explainer::answer(Ask ask) {
  Answer answer;
  answer.ask = std::move(ask);
  if (!answer.ask.obstacle.empty()) {
    answer.reasons.push_back({answer.ask.obstacle_name, 0, answer.ask.obstacle});
    return answer;
  }
  if (answer.ask.roles.empty()) {  // all have their places
    answer.fits = true;
    return answer;
  }
  const Status done = answer.ask.is_gang() ? answer_gang(answer) : answer_pod(answer);
  if (!done) return done.error();
  return answer;
}

// --- a pod ------------------------------------------------------------------------------------------------------

std::vector<NodeAnswer> Explainer::by_nearness(const PodRequest& pod, std::vector<NodeAnswer> answers) const {
  const auto key = [&](const NodeAnswer& node) {
    const Shortfall lacks = shortfall(pod, cluster_->state_of(node.node));
    return std::tuple(placement::is_unresolvable(node.reason), lacks.gpus, lacks.cpu, lacks.memory, lacks.pods,
                      cluster_->node_rank(node.node), node.node);
  };
  std::sort(answers.begin(), answers.end(), [&](const NodeAnswer& a, const NodeAnswer& b) { return key(a) < key(b); });
  return answers;
}

Nearest Explainer::nearest_of(const PodRequest& pod, const NodeAnswer& node) const {
  const bool unresolvable = placement::is_unresolvable(node.reason);
  const Shortfall lacks = shortfall(pod, cluster_->state_of(node.node));
  std::string text;
  const auto add = [&](std::int64_t amount, const std::string& what) {
    if (amount > 0) text += (text.empty() ? "" : ", ") + std::to_string(amount) + " " + what;
  };
  if (!unresolvable || node.reason == Reason::kNodeTooSmall) {
    if (pod.gpu_milli < kWholeGpu) {
      add(lacks.gpus, "GPU with " + std::to_string(pod.gpu_milli) + " milli-GPU free");
    } else {
      add(lacks.gpus, lacks.gpus == 1 ? "free GPU" : "free GPUs");
    }
    add(lacks.cpu, "milli-CPU");
    add((lacks.memory + kMiB - 1) / kMiB, "MiB of memory");
    if (lacks.pods > 0) add(lacks.pods, "pod fewer on it");
  }
  const std::string& name = cluster_->node_name(node.node);
  if (!text.empty()) return {true, name, text, true};
  return {true, name, std::string(placement::reason_text(node.reason)), false};
}

Status Explainer::answer_pod(Answer& answer) {
  const AskingPod& pod = answer.ask.roles.front().members.front();
  const NodeList candidates = selected(pod.node_selector);
  std::vector<NodeAnswer> answers;
  const placement::Decision decision = engine_->plan(pod.request, candidates, &answers);
  if (const auto* placed = std::get_if<placement::Placed>(&decision)) {
    const auto committed = engine_->commit(pod.request, *placed, placement::Knowledge::kPredicted);
    if (!committed) return committed.error();
    answer.fits = true;
    answer.places.push_back(
        {answer.ask.name, cluster_->node_name(placed->node), placement::device_list(placed->devices)});
    return ok_status();
  }
  std::array<std::int64_t, placement::kReasonCount> counts{};
  for (const NodeAnswer& node : answers) ++counts[static_cast<std::size_t>(node.reason)];
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > 0) answer.reasons.push_back({std::string(reason_name(static_cast<Reason>(r))), counts[r]});
  }
  const auto unselected = static_cast<std::int64_t>(file_node_.size() - candidates.size());
  if (unselected > 0) answer.reasons.push_back({"NodeSelector", unselected});
  std::stable_sort(answer.reasons.begin(), answer.reasons.end(),
                   [](const WhyNot& a, const WhyNot& b) { return a.nodes > b.nodes; });
  const std::vector<NodeAnswer> nearest = by_nearness(pod.request, std::move(answers));
  for (const NodeAnswer& node : nearest) {
    if (answer.nearest.size() == kShownNearest) break;
    answer.nearest.push_back(nearest_of(pod.request, node));
  }
  change_pod(pod, nearest, answer);
  return ok_status();
}

void Explainer::change_pod(const AskingPod& pod, std::span<const NodeAnswer> nearest, Answer& answer) {
  const auto relax = [&](const AskingPod& changed, const std::string& without) {
    const auto decision = engine_->plan(changed.request, selected(changed.node_selector));
    const auto* placed = std::get_if<placement::Placed>(&decision);
    if (placed == nullptr) return;
    answer.changes.push_back({"relax", "without " + without + " it fits on " + cluster_->node_name(placed->node)});
  };
  if (!pod.node_selector.empty()) {
    AskingPod changed = pod;
    changed.node_selector.clear();
    relax(changed, "its nodeSelector");
  }
  if (!pod.request.models.empty()) {
    AskingPod changed = pod;
    changed.request.models.clear();
    relax(changed, "its choice of a GPU model");
  }
  if (pod.request.topology_policy != topology::TopologyPolicy::kNone ||
      pod.request.nvlink == placement::NvlinkWish::kRequired) {
    AskingPod changed = pod;
    changed.request.topology_policy = topology::TopologyPolicy::kNone;
    changed.request.nvlink = placement::NvlinkWish::kPreferred;
    relax(changed, "what it asks of the node's topology");
  }
  for (const auto& change : {free_pods(pod.request, nearest), add_node(pod.request, nearest)}) {
    if (change) answer.changes.push_back(*change);
  }
}

std::optional<Change> Explainer::free_pods(const PodRequest& pod, std::span<const NodeAnswer> nearest) {
  placement::EvictionBudget budget;
  std::optional<placement::Eviction> best;
  NodeId best_node;
  for (const NodeAnswer& node : nearest) {
    const auto bound = bound_.find(node.node);
    if (placement::is_unresolvable(node.reason) || bound == bound_.end()) continue;
    // Whoever asks decides which pods may go, so all may; the least important ones are looked at first.
    placement::EvictionQuestion question;
    question.pod = cluster_->intern(pod);
    question.priority = std::numeric_limits<std::int32_t>::max();
    question.node = node.node;
    for (const auto& [id, place] : bound->second) {
      question.pods.push_back({id, input_.file.pods[place].request.priority, 0, false, {}});
    }
    auto found = placement::cheapest_eviction(*cluster_, question, budget);
    if (!found || (best && best->cost <= found->cost)) continue;
    best = std::move(found);
    best_node = node.node;
  }
  if (!best) return std::nullopt;
  std::string pods;
  for (const std::size_t victim : best->victims) {
    const PodRequest& request = input_.file.pods[bound_.at(best_node)[victim].second].request;
    pods += (pods.empty() ? "" : ", ") + request.ns + "/" + request.name;
  }
  return Change{"free_pods", "without " + pods + " it fits on " + cluster_->node_name(best_node)};
}

std::optional<Change> Explainer::add_node(const PodRequest& pod, std::span<const NodeAnswer> nearest) {
  for (const NodeAnswer& node : nearest) {
    if (placement::is_unresolvable(node.reason)) return std::nullopt;  // so are all that follow
    placement::NodeSpec spec = input_.file.nodes[file_node_.at(node.node)];
    spec.name += " once more";
    const auto added = cluster_->add_node(spec, std::numeric_limits<std::uint64_t>::max());
    if (!added) continue;
    const bool fits = placement::node_reason(*cluster_, *added, cluster_->intern(pod)) == Reason::kNone;
    (void)cluster_->remove_node(*added);
    if (fits) return Change{"add_node", "1 more node like " + cluster_->node_name(node.node)};
  }
  return std::nullopt;
}

}  // namespace mortise::sim
