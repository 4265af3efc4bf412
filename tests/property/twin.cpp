#include "tests/property/twin.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace mortise::property {

using placement::Decision;
using placement::NodeAnswer;
using placement::Placed;
using placement::PodRequest;
using placement::Reason;
using placement::Rejected;
using reference::Choice;
using reference::Verdict;

namespace {

reference::Engine reference_engine(const Scenario& scenario, std::string_view policy) {
  const auto rules = reference::parse_rules(policy);
  if (!rules) fail("the reference has no policy '" + std::string(policy) + "'");
  return {*rules, reference::typical_classes(scenario.workload), scenario.seed};
}

std::string choice_text(const std::optional<Choice>& choice) {
  if (!choice) return "rejected";
  return "node " + std::to_string(choice->node) + " " + to_text(choice->devices);
}

std::optional<Choice> as_choice(const Decision& decision) {
  const auto* placed = std::get_if<Placed>(&decision);
  if (placed == nullptr) return std::nullopt;
  return Choice{placed->node.index(), to_list(placed->devices)};
}

int order_of(std::int64_t a, std::int64_t b) {
  return a < b ? -1 : (a > b ? 1 : 0);
}

std::string reason_text_of(Reason reason) {
  return std::string(placement::reason_name(reason));
}

placement::ClusterTotals totals_of(const std::vector<reference::Node>& nodes) {
  placement::ClusterTotals totals;
  for (const reference::Node& node : nodes) {
    const reference::Left left = reference::left_on(node);
    totals.nodes += 1;
    totals.gpus += node.spec.gpus;
    totals.pods += std::ssize(node.pods);
    totals.gpu_capacity += node.spec.gpus * kWholeGpu;
    totals.gpu_used += node.spec.gpus * kWholeGpu - left.milli();
    totals.cpu_capacity += node.spec.cpu;
    totals.cpu_used += node.spec.cpu - left.cpu;
    totals.whole_free_gpus += std::count(left.devices.begin(), left.devices.end(), kWholeGpu);
  }
  return totals;
}

}  // namespace

void fail(const std::string& what) {
  RC_FAIL(what);
  std::abort();
}

std::string to_text(const std::vector<int>& devices) {
  std::string text = "{";
  for (const int device : devices) text += (text.size() > 1 ? "," : "") + std::to_string(device);
  return text + "}";
}

std::string to_text(const Decision& decision) {
  if (std::holds_alternative<placement::Wait>(decision)) return "wait";
  return choice_text(as_choice(decision));
}

std::vector<int> to_list(const placement::DeviceSet& devices) {
  std::vector<int> list;
  devices.for_each([&](int device) { list.push_back(device); });
  return list;
}

Twin::Twin(const Scenario& scenario, std::string_view policy, std::size_t nodes)
    : reference_(reference_engine(scenario, policy)), orders_(scenario.seed) {
  for (std::size_t i = 0; i < nodes; ++i) add_node(scenario.nodes[i]);
  typical_ = std::make_unique<placement::TypicalPods>(scenario.workload, cluster_);
  auto made = placement::make_policy(policy, *typical_);
  if (!made) fail("make_policy: " + made.message());
  engine_ = std::make_unique<placement::Engine>(cluster_, *std::move(made), scenario.seed);
  model_ = std::make_unique<placement::FragmentationModel>(*typical_);
  meter_ = std::make_unique<placement::FragmentationMeter>(cluster_, *typical_);
}

void Twin::add_node(const RankedNode& node) {
  const auto id = cluster_.add_node(node.spec, node.rank);
  if (!id) fail("add_node: " + id.message());
  if (id->index() != nodes_.size()) fail("node ids are not dense from 0");
  ids_.push_back(*id);
  nodes_.push_back({node.spec, node.rank, {}});
}

void Twin::run(const Event& event) {
  if (!event.arrival) {
    if (!held_.empty()) release(event.which % held_.size());
    return;
  }
  for (std::uint32_t i = 0; i < event.copies; ++i) {
    PodRequest pod = event.pod;
    pod.name = next_name();
    pod.uid = pod.name;
    const Decision decision = plan(pod);
    if (const auto* placed = std::get_if<Placed>(&decision)) {
      if (!commit(pod, *placed)) fail("a fresh plan was refused");
    }
  }
}

Decision Twin::plan(const PodRequest& pod) {
  const std::uint64_t version = cluster_.version();
  const std::optional<Choice> expected = reference_.choose(nodes_, pod);
  Decision decision = engine_->plan(pod);
  if (std::holds_alternative<placement::Wait>(decision) || as_choice(decision) != expected) {
    fail(pod.name + " (" + to_text(pod) + "): engine " + to_text(decision) + ", reference " + choice_text(expected));
  }
  if (as_choice(engine_->plan(pod)) != expected) fail(pod.name + ": planned twice, answered differently");
  compare_candidates(pod, decision);
  if (cluster_.version() != version) fail("a plan changed the cluster");
  return decision;
}

std::vector<NodeId> Twin::any_order() {
  std::vector<NodeId> order = ids_;
  orders_.shuffle(order);
  return order;
}

void Twin::compare_candidates(const PodRequest& pod, const Decision& decision) {
  const std::vector<Verdict> verdicts = reference_.judge(nodes_, pod);
  const std::vector<NodeId> order = any_order();
  std::vector<NodeAnswer> answers;
  const Decision among_all = engine_->plan(pod, order, &answers);
  if (as_choice(among_all) != as_choice(decision)) {
    fail(pod.name + ": without candidates " + to_text(decision) + ", with all as candidates " + to_text(among_all));
  }
  if (answers.size() != order.size()) fail(pod.name + ": not one answer per candidate");
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (answers[i].node != order[i]) fail(pod.name + ": answers are not in the candidates' order");
    if (const auto* placed = std::get_if<Placed>(&decision); placed != nullptr && placed->node == order[i]) {
      if (placed->score != answers[i].score) fail(pod.name + ": the plan's score is not its node's");
    }
  }
  compare_answers(pod, verdicts, answers);

  std::vector<NodeId> subset;
  for (const NodeId id : any_order()) {
    if (verdicts[id.index()].reason == Reason::kNone || orders_.below(2) == 0) subset.push_back(id);
  }
  const Decision among_subset = engine_->plan(pod, subset);
  if (as_choice(among_subset) != as_choice(decision)) {
    fail(pod.name + ": " + to_text(decision) + ", without some infeasible nodes " + to_text(among_subset));
  }
  compare_reasons(pod, verdicts, decision);
}

void Twin::compare_answers(const PodRequest& pod, const std::vector<Verdict>& verdicts,
                           const std::vector<NodeAnswer>& answers) const {
  for (const NodeAnswer& a : answers) {
    const Verdict& expected = verdicts[a.node.index()];
    if (a.reason != expected.reason) {
      fail(pod.name + " (" + to_text(pod) + ") on node " + std::to_string(a.node.index()) + ": engine " +
           reason_text_of(a.reason) + ", reference " + reason_text_of(expected.reason));
    }
    if (a.reason != Reason::kNone) continue;
    if (a.score < 0 || a.score > placement::kMaxScore) fail(pod.name + ": score " + std::to_string(a.score));
    for (const NodeAnswer& b : answers) {
      if (b.reason != Reason::kNone) continue;
      const Verdict& other = verdicts[b.node.index()];
      if (order_of(a.score, b.score) == order_of(expected.score, other.score)) continue;
      fail(pod.name + " (" + to_text(pod) + ") on nodes " + std::to_string(a.node.index()) + ", " +
           std::to_string(b.node.index()) + ": engine's scores " + std::to_string(a.score) + ", " +
           std::to_string(b.score) + ", reference's " + std::to_string(expected.score) + ", " +
           std::to_string(other.score));
    }
  }
}

void Twin::compare_reasons(const PodRequest& pod, const std::vector<Verdict>& verdicts, const Decision& decision) {
  std::array<std::int64_t, placement::kReasonCount> counts{};
  for (const Verdict& v : verdicts) ++counts[static_cast<std::size_t>(v.reason)];
  if (engine_->reasons(pod) != counts) fail(pod.name + ": reasons() counts differently");
  if (const auto* rejected = std::get_if<Rejected>(&decision)) {
    const auto most = std::max_element(counts.begin(), counts.end());
    const auto expected = static_cast<Reason>(most - counts.begin());
    if (rejected->main_reason != expected) {
      fail(pod.name + ": main reason " + reason_text_of(rejected->main_reason) + ", reference " +
           reason_text_of(expected));
    }
  }
}

std::optional<Held> Twin::commit(const PodRequest& pod, const Placed& placed) {
  reference::Node& node = nodes_[placed.node.index()];
  const std::vector<int> devices = to_list(placed.devices);
  const bool room = reference::can_hold(node, pod, devices);
  const std::uint64_t version = cluster_.version();
  const auto id = engine_->commit(pod, placed);
  if (id.ok() != room) fail(pod.name + ": commit " + (id ? "went through" : id.message()) + ", reference disagrees");
  if (!id) {
    if (id.message().find("stale") == std::string::npos) fail(pod.name + ": refused with '" + id.message() + "'");
    if (cluster_.version() != version) fail(pod.name + ": a refused plan changed the cluster");
    return std::nullopt;
  }
  if (cluster_.version() != version + 1) fail(pod.name + ": commit is not one change");
  node.pods.push_back({tickets_, pod, devices});
  held_.push_back({*id, tickets_++, placed.node.index()});
  return held_.back();
}

void Twin::release(std::size_t which) {
  const Held held = held_[which];
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  std::erase_if(nodes_[held.node].pods, [&](const reference::HeldPod& pod) { return pod.ticket == held.ticket; });
  const std::uint64_t version = cluster_.version();
  const Status done = cluster_.release(held.id);
  if (!done) fail("release: " + done.message());
  if (cluster_.version() != version + 1) fail("release is not one change");
  if (cluster_.release(held.id).ok()) fail("released twice");
  if (cluster_.version() != version + 1) fail("a refused release changed the cluster");
}

void Twin::compare_state() const {
  const Status sound = cluster_.check();
  if (!sound) fail("check: " + sound.message());
  if (cluster_.totals() != totals_of(nodes_)) fail("totals differ");
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const reference::Left left = reference::left_on(nodes_[i]);
    const placement::NodeState& state = cluster_.state_of(ids_[i]);
    const auto free = state.free_devices();
    if (state.cpu_free != left.cpu || state.memory_free != left.memory || state.pods_free != left.pods ||
        !std::equal(free.begin(), free.end(), left.devices.begin(), left.devices.end())) {
      fail("node " + std::to_string(i) + ": what is left differs");
    }
  }
  // States are interned: the same content is never under two ids.
  for (const NodeId a : ids_) {
    for (const NodeId b : ids_) {
      const bool alike = cluster_.state_of(a) == cluster_.state_of(b);
      if (alike != (cluster_.node_state(a) == cluster_.node_state(b))) fail("equal states under two ids");
    }
  }
  for (const Held& held : held_) {
    const placement::Allocation* allocation = cluster_.allocation(held.id);
    if (allocation == nullptr) fail("an allocation is lost");
    const auto& pods = nodes_[held.node].pods;
    const auto pod = std::find_if(pods.begin(), pods.end(), [&](const auto& p) { return p.ticket == held.ticket; });
    if (allocation->node.index() != held.node || to_list(allocation->devices) != pod->devices) {
      fail("an allocation is not where it was made");
    }
  }
}

void Twin::compare_fragmentation() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const placement::NodeState& state = cluster_.state_of(ids_[i]);
    const double amount = model_->amount(state.cpu_free, state.free_devices(), cluster_.machine_of(ids_[i]).model);
    const double expected = reference_.fragmentation_of(nodes_[i]);
    // The same sum in the same order: not even the last bit may differ.
    if (amount != expected) {
      fail("F of node " + std::to_string(i) + ": " + std::to_string(amount) + ", reference " +
           std::to_string(expected));
    }
  }
  const double amount = meter_->amount();
  const double expected = reference_.fragmentation_of(nodes_);
  if (std::abs(amount - expected) > 1e-3 * static_cast<double>(nodes_.size())) {
    fail("F of the cluster: " + std::to_string(amount) + ", reference " + std::to_string(expected));
  }
}

}  // namespace mortise::property
