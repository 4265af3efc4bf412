#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <variant>

#include "scheduler/base/quote.h"
#include "scheduler/placement/device_list.h"
#include "sim/explain.h"

namespace mortise::sim {

using placement::Domains;
using placement::GangDecision;
using placement::GangPlan;
using placement::GangReason;
using placement::GangRejected;

/// A gang as the planner takes it. The request points into the lists.
struct Explainer::Question {
  placement::GangRequest request;
  std::vector<kube::Labels> selectors{};     // of each role
  std::map<kube::Labels, NodeList> lists{};  // the nodes that have the labels of a selector
  NodeList bound{};

  /// After a copy, or a change of the lists. Roles with one selector share a list, so that they may be one kind.
  void point() {
    for (std::size_t r = 0; r < selectors.size(); ++r) {
      placement::GangRole& role = request.roles[r];
      if (const auto list = lists.find(selectors[r]); list != lists.end()) role.allowed = role.eligible = list->second;
    }
    request.bound = bound;
  }
};

Explainer::Question Explainer::question_of(const Ask& ask) const {
  Question question;
  for (const std::string& name : ask.nodes) {
    if (const auto node = cluster_->find_node(name)) question.bound.push_back(*node);
  }
  for (const AskingRole& asking : ask.roles) {
    placement::GangRole role;
    role.name = asking.name;
    role.pod = asking.members.front().request;
    role.pod.name = ask.name;
    role.count = static_cast<std::int32_t>(asking.members.size());
    role.min = asking.minimum;
    question.request.roles.push_back(std::move(role));
    const kube::Labels& selector = asking.members.front().node_selector;
    question.selectors.push_back(selector);
    if (!selector.empty() && !question.lists.contains(selector)) question.lists[selector] = selected(selector);
  }
  question.request.min = ask.minimum;
  question.request.required_level = ask.required_level;
  question.request.preferred_level = ask.preferred_level;
  question.point();
  return question;
}

Status Explainer::answer_gang(Answer& answer) {
  Question question = question_of(answer.ask);
  question.point();
  for (std::size_t r = 0; r < question.selectors.size(); ++r) {
    if (question.selectors[r].empty() || !question.lists.at(question.selectors[r]).empty()) continue;
    const std::string& role = question.request.roles[r].name;
    const std::string whom = role.empty() ? "its members" : "role " + quote(role);
    answer.reasons.push_back({"NodeSelector", 0, "no node has the labels of the nodeSelector of " + whom});
    relax_members(question, answer);
    return ok_status();
  }
  const GangDecision decision = planner_->plan(question.request);
  answer.note = placement::preference_left_out(question.request.preferred_level, *domains_);
  if (const auto* plan = std::get_if<GangPlan>(&decision)) return take_places(*plan, question, answer);
  const auto& rejected = std::get<GangRejected>(decision);
  const bool never = rejected.reason == GangReason::kNeverFits;
  answer.reasons.push_back({std::string(reason_name(rejected.reason)), 0,
                            rejected.detail + (never ? " if nothing else is there" : ""), rejected.exact});
  if (rejected.reason == GangReason::kNoRoom || never) {
    for (const placement::GangRole& role : question.request.roles) why_on_no_node(role, answer);
  }
  change_gang(question, rejected.reason, answer);
  return ok_status();
}

/// Where not even one member of a role has room, what stands against it is the same as for a pod for itself.
void Explainer::why_on_no_node(const placement::GangRole& role, Answer& answer) {
  NodeList all;
  for (const auto& [node, place] : file_node_) all.push_back(node);
  const std::span<const NodeId> candidates = role.allowed ? *role.allowed : std::span<const NodeId>(all);
  std::vector<placement::NodeAnswer> answers;
  const placement::Decision decision = engine_->plan(role.pod, candidates, &answers);
  if (role.min == 0 || std::holds_alternative<placement::Placed>(decision)) return;
  std::map<placement::Reason, std::int64_t> counts;
  for (const placement::NodeAnswer& node : answers) ++counts[node.reason];
  const std::string whose = role.name.empty() ? "one member" : "one member of role " + quote(role.name);
  for (const auto& [reason, nodes] : counts) {
    answer.reasons.push_back({std::string(placement::reason_name(reason)), nodes,
                              std::to_string(nodes) + (nodes == 1 ? " node" : " nodes") + " for " + whose});
  }
  const auto unselected = static_cast<std::int64_t>(all.size() - candidates.size());
  if (unselected > 0) {
    answer.reasons.push_back({"NodeSelector", unselected, std::to_string(unselected) + " nodes for " + whose});
  }
  const std::vector<placement::NodeAnswer> nearest = by_nearness(role.pod, std::move(answers));
  if (!nearest.empty()) answer.nearest.push_back(nearest_of(role.pod, nearest.front()));
}

std::string Explainer::place_text(const GangPlan& plan) const {
  if (plan.level == Domains::kCluster) return "across the cluster";
  const std::string level(domains_->level_name(plan.level));
  const bool node = plan.level == domains_->node_level();
  return "in " + level + " " + (node ? cluster_->node_name(plan.members.front().node) : domains_->path(plan.domain));
}

Status Explainer::take_places(const GangPlan& plan, const Question& question, Answer& answer) {
  std::vector<std::tuple<std::uint32_t, std::uint32_t, PodPlace>> places;
  for (const placement::GangMember& member : plan.members) {
    const auto& request = answer.ask.roles[member.role].members[member.index].request;
    const auto shape = cluster_->intern(question.request.roles[member.role].pod);
    const auto applied = cluster_->apply(shape, member.node, member.devices, placement::Knowledge::kPredicted);
    if (!applied) return Error{"pod " + quote(request.name) + ": " + applied.message()};
    places.emplace_back(member.role, member.index,
                        PodPlace{request.ns + "/" + request.name, cluster_->node_name(member.node),
                                 placement::device_list(member.devices)});
  }
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  for (auto& place : places) answer.places.push_back(std::get<2>(std::move(place)));
  answer.fits = true;
  answer.level = domains_->level_name(plan.level);
  answer.domain = plan.level == domains_->node_level() ? cluster_->node_name(plan.members.front().node)
                                                       : domains_->path(plan.domain);
  int level = plan.level;
  for (const std::int64_t domains : plan.domains) {
    answer.domains.push_back({std::string(domains_->level_name(++level)), domains});
  }
  return ok_status();
}

// --- what would make it fit -------------------------------------------------------------------------------------

void Explainer::change_gang(const Question& question, GangReason reason, Answer& answer) {
  if (reason == GangReason::kInvalid) return;
  relax_level(question, answer);
  if (reason != GangReason::kNoRoom && reason != GangReason::kNeverFits) return;
  relax_members(question, answer);
  uncordon(question, answer);
  const std::optional<NodeId> near = fewer_members(question, answer);
  if (required_level(question) == domains_->node_level()) return;  // a new node is a new domain
  if (const auto like = roomiest(question, near)) {
    if (const auto change = more_nodes(question, *like)) answer.changes.push_back(*change);
  }
}

/// The finest coarser level for which it fits.
void Explainer::relax_level(const Question& question, Answer& answer) {
  placement::GangRequest request = question.request;
  const std::string without = request.required_level;
  if (without.empty()) return;
  int level = domains_->find_level(without).value_or(0) - 1;
  for (; level >= Domains::kCluster; --level) {
    request.required_level = level == Domains::kCluster ? "" : domains_->level_name(level);
    const GangDecision decision = planner_->plan(request);
    const auto* plan = std::get_if<GangPlan>(&decision);
    if (plan == nullptr) continue;
    answer.changes.push_back({"relax", "without topology level " + quote(without) + " it fits " + place_text(*plan)});
    return;
  }
}

/// What members ask for beside amounts, one thing after the other for all roles.
void Explainer::relax_members(const Question& question, Answer& answer) {
  const auto attempt = [&](Question changed, const std::string& without) {
    changed.point();
    const GangDecision decision = planner_->plan(changed.request);
    const auto* plan = std::get_if<GangPlan>(&decision);
    if (plan == nullptr) return;
    answer.changes.push_back({"relax", "without " + without + " it fits " + place_text(*plan)});
  };
  if (!question.lists.empty()) {
    Question changed = question;
    changed.lists.clear();
    for (placement::GangRole& role : changed.request.roles) role.allowed = role.eligible = std::nullopt;
    attempt(std::move(changed), "its nodeSelector");
  }
  Question models = question;
  Question inside = question;
  bool asks_models = false;
  bool asks_inside = false;
  for (std::size_t r = 0; r < question.request.roles.size(); ++r) {
    const placement::PodRequest& pod = question.request.roles[r].pod;
    asks_models = asks_models || !pod.models.empty();
    asks_inside = asks_inside || pod.topology_policy != topology::TopologyPolicy::kNone ||
                  pod.nvlink == placement::NvlinkWish::kRequired;
    models.request.roles[r].pod.models.clear();
    inside.request.roles[r].pod.topology_policy = topology::TopologyPolicy::kNone;
    inside.request.roles[r].pod.nvlink = placement::NvlinkWish::kPreferred;
  }
  if (asks_models) attempt(std::move(models), "its choice of a GPU model");
  if (asks_inside) attempt(std::move(inside), "what it asks of the node's topology");
}

/// Of the nodes that are cordoned those that it would be on if none were.
void Explainer::uncordon(const Question& question, Answer& answer) {
  NodeList cordoned;
  const auto set_schedulable = [&](NodeId node, bool schedulable) {
    placement::NodeSpec spec = input_.file.nodes[file_node_.at(node)];
    spec.schedulable = schedulable;
    return cluster_->update_node(node, spec);
  };
  for (const auto& [node, place] : file_node_) {
    if (!input_.file.nodes[place].schedulable && set_schedulable(node, true)) cordoned.push_back(node);
  }
  if (cordoned.empty()) return;
  const GangDecision decision = planner_->plan(question.request);
  for (const NodeId node : cordoned) (void)set_schedulable(node, false);
  const auto* plan = std::get_if<GangPlan>(&decision);
  if (plan == nullptr) return;
  std::string names;
  for (const NodeId node : cordoned) {
    const auto on_it = [node](const placement::GangMember& member) { return member.node == node; };
    if (std::none_of(plan->members.begin(), plan->members.end(), on_it)) continue;
    names += (names.empty() ? "" : ", ") + cluster_->node_name(node);
  }
  answer.changes.push_back({"uncordon", "with " + names + " uncordoned it fits " + place_text(*plan)});
}

/// As many members as have room together; a node of theirs, if any have.
std::optional<NodeId> Explainer::fewer_members(const Question& question, Answer& answer) {
  placement::GangRequest request = question.request;
  std::int64_t wanted = 0;
  for (placement::GangRole& role : request.roles) {
    role.min = 0;
    wanted += role.count;
  }
  request.min = 1;
  const GangDecision decision = planner_->plan(request);
  const auto* plan = std::get_if<GangPlan>(&decision);
  if (plan == nullptr) return std::nullopt;
  const auto found = static_cast<std::int64_t>(plan->members.size());
  const NodeId node = plan->members.front().node;
  const int level = required_level(question);
  const bool one_node = level == domains_->node_level();
  const std::string where = one_node ? cluster_->node_name(node) : domains_->path(domains_->domain_of(node, level));
  // It may be that there are enough members, but not of every role.
  const std::int64_t needed = found < question.request.min ? question.request.min : wanted;
  answer.nearest.push_back(
      {one_node, where, std::to_string(needed - found) + " of " + std::to_string(needed) + " members"});
  // A minimum below all of them says already with how few it would do.
  if (question.request.min == wanted && question.bound.empty())
    answer.changes.push_back({"fewer_members", "with " + std::to_string(found) + " of its " + std::to_string(wanted) +
                                                   " members it fits " + place_text(*plan)});
  return node;
}

/// What the cluster is known to have.
int Explainer::required_level(const Question& question) const {
  const std::string& level = question.request.required_level;
  return level.empty() ? Domains::kCluster : domains_->find_level(level).value_or(Domains::kCluster);
}

/// The node with the most GPUs, the first by name, where the largest role may go and, given a node that is near, in its
/// domain of the required level.
std::optional<NodeId> Explainer::roomiest(const Question& question, std::optional<NodeId> near) const {
  const auto largest = std::max_element(question.request.roles.begin(), question.request.roles.end(),
                                        [](const auto& a, const auto& b) { return a.pod.gpus < b.pod.gpus; });
  const auto list =
      question.lists.find(question.selectors[static_cast<std::size_t>(largest - question.request.roles.begin())]);
  const int level = required_level(question);
  std::optional<NodeId> best;
  for (const auto& [node, place] : file_node_) {
    const placement::NodeSpec& spec = input_.file.nodes[place];
    if (!spec.schedulable) continue;
    if (near && domains_->domain_of(node, level) != domains_->domain_of(*near, level)) continue;
    if (list != question.lists.end() && !std::binary_search(list->second.begin(), list->second.end(), node)) continue;
    const placement::NodeSpec* known = best ? &input_.file.nodes[file_node_.at(*best)] : nullptr;
    if (known == nullptr || std::tuple(-spec.gpus, spec.name) < std::tuple(-known->gpus, known->name)) best = node;
  }
  return best;
}

/// So many more nodes like this one, with its labels, found by adding one after the other.
std::optional<Change> Explainer::more_nodes(const Question& question, NodeId like) {
  constexpr int kMost = 64;
  const std::size_t place = file_node_.at(like);
  if (place >= input_.file.labels.size()) return std::nullopt;
  const kube::Labels& own = input_.file.labels[place];
  const std::vector<placement::Label> labels(own.begin(), own.end());
  Question with = question;
  NodeList added;
  std::optional<Change> change;
  while (!change && added.size() < kMost) {
    placement::NodeSpec spec = input_.file.nodes[place];
    spec.name += " once more " + std::to_string(added.size() + 1);
    const auto node = cluster_->add_node(spec, std::numeric_limits<std::uint64_t>::max());
    if (!node) break;
    added.push_back(*node);
    domains_->set_node(*node, labels);
    for (auto& [selector, list] : with.lists) {
      if (std::find(list.begin(), list.end(), like) != list.end()) list.push_back(*node);
    }
    with.point();
    const GangDecision decision = planner_->plan(with.request);
    if (std::holds_alternative<GangPlan>(decision)) {
      change = Change{"add_node", std::to_string(added.size()) + " more " + (added.size() == 1 ? "node" : "nodes") +
                                      " like " + cluster_->node_name(like) +
                                      (question.request.required_level.empty() ? "" : ", with its labels")};
    }
  }
  for (const NodeId node : added) {
    domains_->remove_node(node);
    (void)cluster_->remove_node(node);
  }
  domains_->refresh();
  return change;
}

}  // namespace mortise::sim
