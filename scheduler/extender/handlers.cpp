#include "scheduler/extender/handlers.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include "scheduler/extender/gangs.h"

namespace mortise::extender {
namespace {

using placement::Decision;
using placement::NodeAnswer;
using placement::Placed;
using placement::PodRequest;
using placement::Reason;

/// How often one node is answered before it is taken for refused.
constexpr int kAsksPerPlan = 2;
constexpr std::size_t kMaxNameBytes = 253;  // of Kubernetes object names (RFC 1123 subdomains)
constexpr std::int64_t kMaxPriority = 10;   // MaxExtenderPriority
constexpr placement::Knowledge kForeseen = placement::Knowledge::kPredicted;  // of the places we choose

constexpr std::string_view kDecisiveText = "Decisive: another node chosen";
constexpr std::string_view kBoundText = "Bound: the pod is bound to another node";
constexpr std::string_view kKeptText = "Kept: for a gang of the same or higher priority";

std::vector<std::string> reason_texts(const std::string& invalid) {
  std::vector<std::string> texts;
  texts.reserve(placement::kReasonCount + 4);
  for (int i = 0; i < placement::kReasonCount; ++i) texts.emplace_back(reason_text(static_cast<Reason>(i)));
  texts.emplace_back(kDecisiveText);
  texts.emplace_back(kBoundText);
  texts.emplace_back(kKeptText);
  texts.push_back(invalid);
  return texts;
}

void reject(NodeVerdict& node, Reason reason) {
  node.verdict = is_unresolvable(reason) ? Verdict::kUnresolvable : Verdict::kFailed;
  node.reason = static_cast<std::uint8_t>(reason);
}

bool is_feasible(std::span<const NodeAnswer> answers, NodeId node) {
  return std::any_of(answers.begin(), answers.end(),
                     [&](const NodeAnswer& a) { return a.node == node && a.reason == Reason::kNone; });
}

bool same_namespace(std::string_view a, std::string_view b) {
  const auto or_default = [](std::string_view ns) { return ns.empty() ? std::string_view("default") : ns; };
  return or_default(a) == or_default(b);
}

/// 0..10 for every feasible node: the policy's choice gets 10, the others their place between the worst and the best
/// score, at most 9, so that the choice stands out even where ten steps cannot tell two scores apart. A larger score
/// never gets less. What does not fit gets 0.
std::int64_t advisory_priority(const NodeAnswer& answer, NodeId best, placement::Score low, placement::Score high) {
  if (answer.reason != Reason::kNone) return 0;
  if (answer.node == best) return kMaxPriority;
  if (high == low) return kMaxPriority - 1;
  return (kMaxPriority - 1) * (std::int64_t{answer.score} - low) / (std::int64_t{high} - low);
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomeCount> kNames = {"placed",  "rejected", "unmanaged",
                                                                  "invalid", "bound",    "waits"};
  return kNames[static_cast<std::size_t>(outcome)];
}

bool Handlers::is_ours(std::string_view scheduler) const {
  const std::string_view name = scheduler.empty() ? "default-scheduler" : scheduler;
  return schedulers_.empty() || std::find(schedulers_.begin(), schedulers_.end(), name) != schedulers_.end();
}

/// The node of this name, which stands in a request after the one that `place` is of. kube-scheduler names the nodes in
/// much the same order every time, so the one that came there before is looked at first: of 1,000 names nearly all are
/// found without being hashed.
std::optional<NodeId> Handlers::find_after(std::size_t& place, std::string_view name) {
  NodeId& follower = followers_[place];
  if (!cluster_.is_node(follower, name)) {
    const auto found = cluster_.find_node(name);
    if (!found) return std::nullopt;
    follower = *found;
  }
  place = follower.index() + 1;
  return follower;
}

Handlers::Asked Handlers::collect(const std::vector<AskedNode>& asked) {
  Asked out;
  out.nodes.reserve(asked.size());
  out.known.reserve(asked.size());
  out.at.reserve(asked.size());
  first_entry_.resize(cluster_.node_count());
  followers_.resize(cluster_.node_count() + 1);
  std::size_t place = 0;
  std::unordered_map<std::string_view, std::uint32_t> unknown;
  for (const AskedNode& node : asked) {
    const auto id = node.name.empty() ? std::nullopt : find_after(place, node.name);
    std::uint32_t& entry = id ? first_entry_[id->index()] : unknown[node.name];
    if (entry == 0) {
      out.nodes.push_back({node.name, {}});
      entry = static_cast<std::uint32_t>(out.nodes.size());
      if (!node.name.empty()) ++out.named;
      if (id) {
        out.known.push_back(*id);
        out.at.push_back(entry - 1);
      }
    }
    NodeVerdict& verdict = out.nodes[entry - 1];
    if (node.object.empty()) verdict.by_name = true;
    if (verdict.object.empty()) verdict.object = node.object;
  }
  for (const NodeId id : out.known) first_entry_[id.index()] = 0;
  return out;
}

/// Null for a pod without UID: there is nothing to know it by. Nor is one kept whose names no API server would accept:
/// the memory is bounded by the number of pods, so each must be small.
AskedPod* Handlers::remember(const PodQuestion& question) {
  const PodRequest& pod = question.pod;
  const auto oversized = [](const std::string& text) { return text.size() > kMaxNameBytes; };
  if (pod.uid.empty() || oversized(pod.uid) || oversized(pod.name) || oversized(pod.ns)) return nullptr;
  if (question.group.size() > 2 * kMaxNameBytes + 1) return nullptr;
  AskedPod& memory = asked_pods_.touch(pod.uid, clock_.now());
  memory.request = pod;
  memory.ours = is_ours(question.scheduler);
  memory.group = question.group;
  return find_memory(pod.uid);
}

/// What is remembered of the pod, without a plan for a node that has left since; null: nothing.
AskedPod* Handlers::find_memory(std::string_view uid) {
  AskedPod* memory = asked_pods_.find(uid, clock_.now());
  if (memory != nullptr && memory->plan && cluster_.find_node(memory->planned_node) != memory->plan->node) {
    memory->plan.reset();
  }
  return memory;
}

const Booking* Handlers::find_bound(std::string_view uid) const {
  const Booking* booking = bookings_.find(uid);
  return booking != nullptr && booking->stage != Booking::Stage::kReserved ? booking : nullptr;
}

/// The decisive answer. `counts` is false for a question that must leave no trace.
Handlers::Choice Handlers::choose(const PodRequest& pod, AskedPod* memory, Answers answers, const Placed& best,
                                  bool counts) {
  if (memory == nullptr) return {best};
  Choice choice;
  if (memory->plan && is_feasible(answers, memory->plan->node)) {
    if (!counts) return {*memory->plan};
    if (memory->asks < kAsksPerPlan) {
      ++memory->asks;
      return {*memory->plan};
    }
    memory->set_aside(memory->plan->node, clock_.now());
    choice.refused = true;
  }
  choice.placed = best_not_aside(pod, *memory, answers, best);
  if (counts) {
    memory->plan = choice.placed;
    memory->planned_node = cluster_.node_name(choice.placed.node);
    memory->decided = stamp();
    memory->asks = 1;
  }
  return choice;
}

/// When every feasible node is set aside, the one whose time ends first: an answer that may be refused again is
/// better than leaving a pod pending that fits.
Placed Handlers::best_not_aside(const PodRequest& pod, const AskedPod& memory, Answers answers, const Placed& best) {
  const Nanoseconds now = clock_.now();
  if (!memory.aside_until(best.node, now)) return best;
  std::vector<NodeId> allowed;
  std::vector<std::tuple<Nanoseconds, std::uint64_t, NodeId>> aside;
  for (const NodeAnswer& answer : answers) {
    if (answer.reason != Reason::kNone) continue;
    if (const auto until = memory.aside_until(answer.node, now)) {
      aside.emplace_back(*until, cluster_.node_rank(answer.node), answer.node);
    } else {
      allowed.push_back(answer.node);
    }
  }
  if (allowed.empty()) allowed.push_back(std::get<NodeId>(*std::min_element(aside.begin(), aside.end())));
  const Decision decision = engine_.plan(pod, allowed);
  const auto* placed = std::get_if<Placed>(&decision);
  return placed != nullptr ? *placed : best;
}

void Handlers::drop_expired() {
  if (gangs_ != nullptr) return gangs_->expire();
  (void)bookings_.drop_expired(clock_.now());
}

FilterAnswer Handlers::filter(const PodQuestion& question) {
  drop_expired();
  Asked asked = collect(question.args.nodes);
  FilterAnswer answer;
  answer.result.has_names = question.args.has_names;
  answer.result.has_nodes = question.args.has_nodes;
  answer.result.reasons = reason_texts(question.invalid);
  const bool ours = is_ours(question.scheduler);
  if (ours && !question.invalid.empty()) {
    answer.outcome = Outcome::kInvalid;
    for (NodeVerdict& node : asked.nodes) {
      node.verdict = Verdict::kUnresolvable;
      node.reason = kInvalid;
    }
  } else if (const Booking* bound = find_bound(question.pod.uid)) {
    answer.outcome = Outcome::kBound;
    for (NodeVerdict& node : asked.nodes) {
      if (node.name == bound->node) continue;
      node.verdict = Verdict::kUnresolvable;
      node.reason = kBoundElsewhere;
    }
  } else if (ours && filter_gang(question, asked, answer, answer.result.reasons[kGangReason])) {
    // answered for the gang as a whole
  } else if (!ours || question.unmanaged()) {
    answer.outcome = Outcome::kUnmanaged;
    remember(question);
    for (NodeVerdict& node : asked.nodes) {
      if (node.name.empty()) reject(node, Reason::kUnknownNode);
    }
  } else {
    filter_managed(question, asked, answer);
  }
  answer.result.nodes = std::move(asked.nodes);
  return answer;
}

void Handlers::filter_managed(const PodQuestion& question, Asked& asked, FilterAnswer& answer) {
  AskedPod* memory = remember(question);
  const bool member = memory != nullptr && !question.group.empty();
  if (member) trials_.ask(question.group, question.pod.uid, clock_.now());
  const std::vector<std::uint32_t> kept = take_out_kept(question, asked);
  std::vector<NodeAnswer> answers;
  answers.reserve(asked.known.size());
  // One node only: a nominated or hinted one. The answer is for that node and must not disturb the plan. Nor may a
  // question about none.
  const bool one_node = asked.named <= 1;
  if (!one_node) bookings_.drop_reservation(question.pod.uid);
  const Decision decision = as_asked(
      question, [&](const placement::ClusterState&) { return engine_.plan(question.pod, asked.known, &answers); });
  for (NodeVerdict& node : asked.nodes) reject(node, Reason::kUnknownNode);
  for (const std::uint32_t entry : kept) {
    asked.nodes[entry].verdict = Verdict::kFailed;
    asked.nodes[entry].reason = kKeptNode;
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    NodeVerdict& node = asked.nodes[asked.at[i]];
    node.verdict = Verdict::kPassed;
    if (answers[i].reason != Reason::kNone) reject(node, answers[i].reason);
  }
  const auto* best = std::get_if<Placed>(&decision);
  if (memory != nullptr) {
    memory->fitting = best != nullptr ? std::optional(best->node) : std::nullopt;
    memory->answered = clock_.now();
  }
  if (member) pass_member(question, *memory, one_node, best, answers);
  if (best == nullptr) {
    answer.outcome = Outcome::kRejected;
    const auto* rejected = std::get_if<placement::Rejected>(&decision);
    const bool judged = rejected != nullptr && !answers.empty();
    answer.main_reason = judged ? rejected->main_reason : Reason::kUnknownNode;
    return;
  }
  if (!question.decisive || one_node) return;
  const Choice choice = member ? Choice{*best} : choose(question.pod, memory, answers, *best, true);
  answer.refused = choice.refused;
  if (reserve_for_ > 0 && memory != nullptr && !member) reserve(*memory, choice.placed);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    NodeVerdict& node = asked.nodes[asked.at[i]];
    if (node.verdict != Verdict::kPassed || answers[i].node == choice.placed.node) continue;
    node.verdict = Verdict::kFailed;
    node.reason = kDecisive;
  }
}

/// A trial that is repeated says nothing about the nodes, so none is ever set aside. The place counts in this trial
/// only where there is no doubt about the node that is taken.
void Handlers::pass_member(const PodQuestion& question, AskedPod& memory, bool one_node, const Placed* best,
                           Answers answers) {
  const auto passing = std::count_if(answers.begin(), answers.end(),
                                     [](const NodeAnswer& answer) { return answer.reason == Reason::kNone; });
  const bool certain = best != nullptr && (question.decisive || passing == 1);
  memory.plan = certain ? std::optional(*best) : std::nullopt;
  memory.planned_node = certain ? cluster_.node_name(best->node) : std::string();
  memory.asks = 1;
  trials_.tell(question.group, {question.pod, memory.plan, clock_.now(), one_node && best == nullptr});
}

/// Where planned devices were bound or reserved meanwhile, others on the same node stand for them.
void Handlers::assume_others(placement::ClusterState& cluster, const PodQuestion& question) {
  for (const TrialMember* other : trials_.others(question.group, question.pod.uid, clock_.now())) {
    if (!other->placed || bookings_.find(other->pod.uid) != nullptr) continue;
    const NodeId node = other->placed->node;
    if (cluster.find_node(cluster.node_name(node)) != node) continue;
    const ShapeId shape = cluster.intern(other->pod);
    if (cluster.apply(shape, node, other->placed->devices, kForeseen).ok()) continue;
    const Decision decision = engine_.plan(other->pod, {&node, 1});
    if (const auto* placed = std::get_if<Placed>(&decision))
      (void)cluster.apply(shape, node, placed->devices, kForeseen);
  }
}

/// The devices of an earlier plan may be taken by now; the node still fits.
void Handlers::reserve(const AskedPod& memory, const Placed& placed) {
  const PodRequest& pod = memory.request;
  const Nanoseconds expires = clock_.now() + reserve_for_;
  if (bookings_.reserve(pod, placed, expires, kForeseen, memory.decided)) return;
  const Decision decision = engine_.plan(pod, {&placed.node, 1});
  if (const auto* again = std::get_if<Placed>(&decision))
    (void)bookings_.reserve(pod, *again, expires, kForeseen, stamp());
}

std::vector<HostPriority> Handlers::prioritize(const PodQuestion& question) {
  const Asked asked = collect(question.args.nodes);
  std::vector<HostPriority> priorities;
  priorities.reserve(asked.nodes.size());
  for (const NodeVerdict& node : asked.nodes) priorities.push_back({node.name, 0});
  if (!question.invalid.empty() || question.unmanaged() || !is_ours(question.scheduler)) return priorities;
  if (const Booking* bound = find_bound(question.pod.uid)) {
    for (HostPriority& entry : priorities) {
      if (entry.host == bound->node) entry.score = kMaxPriority;
    }
    return priorities;
  }
  std::vector<NodeAnswer> answers;
  answers.reserve(asked.known.size());
  const Decision decision = as_asked(
      question, [&](const placement::ClusterState&) { return engine_.plan(question.pod, asked.known, &answers); });
  const auto* best = std::get_if<Placed>(&decision);
  if (best == nullptr) return priorities;
  if (question.decisive) {
    AskedPod* memory = find_memory(question.pod.uid);
    const NodeId chosen = choose(question.pod, memory, answers, *best, false).placed.node;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].node == chosen) priorities[asked.at[i]].score = kMaxPriority;
    }
    return priorities;
  }
  placement::Score low = best->score;
  for (const NodeAnswer& answer : answers) {
    if (answer.reason == Reason::kNone) low = std::min(low, answer.score);
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    priorities[asked.at[i]].score = advisory_priority(answers[i], best->node, low, best->score);
  }
  return priorities;
}

std::string Handlers::bind(const BindingArgs& args) {
  const BindStart start = start_bind(args);
  if (start.error.empty() && !start.done) finish_bind(start, args.node, BindResult::State::kBound);
  return start.error;
}

Handlers::BindStart Handlers::start_bind(const BindingArgs& args) {
  BindStart start;
  const std::string who = "pod " + args.pod_namespace + "/" + args.pod_name + " (UID " + args.pod_uid + ")";
  const auto refuse = [&](const std::string& why) {
    start.error = who + why;
    return start;
  };
  if (args.node.empty()) return refuse(": no Node given");
  const auto names_differ = [&](const PodRequest& pod) {
    return pod.name != args.pod_name || !same_namespace(pod.ns, args.pod_namespace);
  };
  const auto belongs_to = [](const PodRequest& pod) { return ": this UID belongs to " + pod.ns + "/" + pod.name; };
  if (const Booking* bound = find_bound(args.pod_uid)) {
    if (names_differ(bound->request)) return refuse(belongs_to(bound->request));
    if (bound->stage == Booking::Stage::kBinding) return refuse(" is being bound to node " + bound->node);
    if (bound->node != args.node) return refuse(" is already bound to node " + bound->node);
    start.done = true;
    return start;
  }
  const AskedPod* memory = find_memory(args.pod_uid);
  const WaitingPod* waiting = memory == nullptr && waiting_ ? waiting_(args.pod_uid) : nullptr;
  if (memory == nullptr && waiting == nullptr) {
    return refuse(" is not known: no filter for it in the last 10 minutes");
  }
  const PodRequest* pod = memory != nullptr ? &memory->request : &waiting->request;
  if (names_differ(*pod)) return refuse(belongs_to(*pod));
  start.request = *pod;
  if (memory != nullptr ? !memory->ours : !is_ours(waiting->scheduler)) return start;
  if (const std::string why = gangs_ != nullptr ? gangs_->start_bind(args.pod_uid, args.node) : std::string();
      !why.empty()) {
    return refuse(": " + why);
  }
  const auto node = cluster_.find_node(args.node);
  const std::string error = node ? take_place(*pod, memory, *node) : "node " + args.node + " is not known";
  // Without GPUs there is nothing for us to refuse; CPU and memory are kube-scheduler's own affair.
  if (!error.empty() && pod->gpus > 0) return refuse(": " + error);
  const Booking* held = bookings_.find(args.pod_uid);
  if (held != nullptr && held->allocation) {
    start.devices = cluster_.allocation(*held->allocation)->devices;
    start.decided = held->decided;
  }
  if (gangs_ != nullptr) start.slot = gangs_->slot_of(args.pod_uid);
  start.holds_place = bookings_.start_binding(args.pod_uid);
  if (memory != nullptr) trials_.settle(memory->group, args.pod_uid);
  return start;
}

void Handlers::finish_bind(const BindStart& start, const std::string& node, BindResult::State state) {
  const PodRequest& pod = start.request;
  if (state == BindResult::State::kNotBound) {
    bookings_.binding_failed(pod.uid);
    if (gangs_ != nullptr) gangs_->freed();
    return;
  }
  if (state == BindResult::State::kUnknown) {
    constexpr Nanoseconds kKept = 60 * kSecond;
    bookings_.binding_unknown(pod.uid, clock_.now() + kKept);
    return;
  }
  asked_pods_.erase(pod.uid);
  if (gangs_ != nullptr) gangs_->bound_with(pod.uid, start.slot.plan);
  // News of the pod may come before the answer to its Binding: bound, and deleted again.
  const bool would_be_known = start.holds_place || (waiting_ && waiting_(pod.uid) == nullptr);
  if (would_be_known && bookings_.find(pod.uid) == nullptr) return;
  bookings_.bound(pod, node, {});
  if (waiting_) return;  // kubelet says when it starts
  const Booking* booking = bookings_.find(pod.uid);
  if (booking != nullptr && !booking->started) bookings_.started(pod.uid, clock_.since_1970());
}

/// What is reserved on the node; else the plan's own devices while they are free, else the policy's choice there now.
/// The node may have changed since: a place is taken only if the pod would be sent there now.
std::string Handlers::take_place(const PodRequest& pod, const AskedPod* memory, NodeId node) {
  const Nanoseconds expires = clock_.now() + 1;
  const Decision decision = bookings_.without_reservation(pod.uid, [&] { return engine_.plan(pod, {&node, 1}); });
  const auto* placed = std::get_if<Placed>(&decision);
  const Booking* held = bookings_.find(pod.uid);
  const bool holds_it = held != nullptr && held->allocation && held->node == cluster_.node_name(node);
  if (placed != nullptr && holds_it && !held->is_short(cluster_)) return {};
  bookings_.drop_reservation(pod.uid);
  if (placed == nullptr) {
    const auto* rejected = std::get_if<placement::Rejected>(&decision);
    const Reason reason = rejected != nullptr ? rejected->main_reason : Reason::kNodeBlocked;
    return "does not fit on node " + cluster_.node_name(node) + ": " + std::string(reason_text(reason));
  }
  // What a member of a group was told in a trial is decided only now.
  const bool told = memory != nullptr && memory->group.empty();
  const kube::DecisionStamp decided = told ? memory->decided : stamp();
  const bool planned = memory != nullptr && memory->plan && memory->plan->node == node;
  if (planned && bookings_.reserve(pod, *memory->plan, expires, kForeseen, decided)) return {};
  const Status reserved = bookings_.reserve(pod, *placed, expires, kForeseen, stamp());
  return reserved.ok() ? std::string() : reserved.message();
}

}  // namespace mortise::extender
