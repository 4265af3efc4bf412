#include "scheduler/extender/cluster_view.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/extender/gang_view.h"

namespace mortise::extender {
namespace {

using nlohmann::ordered_json;
using placement::Reason;

double in_gpus(double milli) {
  return milli / static_cast<double>(kWholeGpu);
}

/// Two digits are enough for people and keep the text short.
double percent(double ratio) {
  return std::round(ratio * 1e4) / 100;
}

Reply json_reply(int status, const ordered_json& document) {
  return {status, document.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n"};
}

ordered_json headroom_json(const placement::Headroom& headroom) {
  ordered_json pods;
  for (std::size_t i = 0; i < placement::kHeadroomSizes.size(); ++i) {
    pods[std::to_string(placement::kHeadroomSizes[i])] = headroom.pods[i];
  }
  return {{"pods_by_gpus", pods}, {"free_nodes", headroom.free_nodes}};
}

ordered_json kubelet_json(const placement::NodeTopology* topology) {
  if (topology == nullptr) return {{"topology_policy", "unknown"}};
  const topology::KubeletConfig& kubelet = topology->kubelet();
  return {{"topology_policy", topology::to_text(kubelet.policy)},
          {"policy_assumed", topology->spec().policy_assumed},
          {"scope", kubelet.scope == topology::TopologyScope::kPod ? "pod" : "container"},
          {"cpu_manager", kubelet.cpu_static ? "static" : "none"},
          {"memory_manager", kubelet.memory_static ? "Static" : "None"},
          {"devices_chosen_by", topology->enforced() ? "mortise" : "kubelet"}};
}

ordered_json states_json(const placement::Belief* belief) {
  if (belief == nullptr) return {{"known", true}, {"count", 1}};
  if (!belief->complete) return {{"known", false}, {"count", nullptr}};
  return {{"known", true}, {"count", belief->states.size()}};
}

/// Why a node takes no pods at all, or none with GPUs; null: it does.
ordered_json closed_json(const placement::Machine& machine) {
  if (!machine.schedulable) return placement::reason_text(Reason::kCordoned);
  if (machine.blocked) return placement::reason_text(Reason::kNodeBlocked);
  return nullptr;
}

ordered_json sighting_json(const Sighting* sighting) {
  if (sighting == nullptr) return nullptr;
  return {{"source", kWitnesses[static_cast<std::size_t>(sighting->by)]},
          {"what", sighting->what},
          {"mismatch", sighting->mismatch}};
}

ordered_json node_json(const placement::ClusterState& cluster, NodeId id, const Sighting* sighting) {
  const placement::NodeState& state = cluster.state_of(id);
  const placement::Machine& machine = cluster.machine_of(id);
  ordered_json free = ordered_json::array();
  for (const std::int16_t left : state.free_devices()) free.push_back(left);
  return {{"name", cluster.node_name(id)},
          {"gpu_model", cluster.model_name(machine.model)},
          {"gpus", machine.gpus},
          {"gpus_wholly_free", state.whole_free()},
          {"free_milli_gpu_by_device", free},
          {"pods", {{"held", machine.pods - state.pods_free}, {"most", machine.pods}}},
          {"cpu_milli", {{"free", state.cpu_free}, {"allocatable", machine.cpu}}},
          {"memory_bytes", {{"free", state.memory_free}, {"allocatable", machine.memory}}},
          {"kubelet", kubelet_json(cluster.topology_of(machine))},
          {"states_believed", states_json(cluster.belief_of(id))},
          {"last_observed", sighting_json(sighting)},
          {"schedulable", machine.schedulable},
          {"blocked", machine.blocked},
          {"takes_no_gpu_pods_because", closed_json(machine)}};
}

Reply not_found(const std::string& why) {
  return json_reply(404, {{"error", why}});
}

}  // namespace

ClusterView::ClusterView(const Parts& parts)
    : parts_(parts), headroom_(parts.cluster, parts.engine.device_objective()) {}

ClusterFigures ClusterView::figures() {
  ClusterFigures figures;
  const std::lock_guard lock(parts_.service.mutex());
  figures.totals = parts_.cluster.totals();
  figures.headroom = headroom_.measure();
  figures.fragmentation = parts_.fragmentation.amount();
  figures.observed = parts_.handlers.observations().counts();
  figures.failed_queries = parts_.handlers.observations().failed_queries();
  if (parts_.gangs != nullptr) {
    figures.gang_life = parts_.gangs->figures();
    for (const auto& [key, gang] : parts_.gangs->gangs()) {
      ++figures.gangs[static_cast<std::size_t>(parts_.gangs->phase(gang))];
    }
  }
  const placement::StateTable& states = parts_.cluster.states();
  for (std::uint32_t slot = 0; slot < states.slot_count(); ++slot) {
    const auto nodes = static_cast<std::int64_t>(states.members(StateId{slot}).size());
    if (nodes == 0) continue;
    const placement::Machine& machine = parts_.cluster.machine(states.state(StateId{slot}).machine);
    ++figures.states;
    if (!machine.schedulable) figures.cordoned += nodes;
    if (machine.blocked) figures.blocked += nodes;
    const placement::NodeTopology* topology = parts_.cluster.topology_of(machine);
    if (machine.gpus > 0 && (topology == nullptr || topology->spec().policy_assumed)) figures.no_topology += nodes;
  }
  return figures;
}

Reply ClusterView::metrics() {
  parts_.metrics.set_figures(figures());
  if (parts_.watches) parts_.metrics.set_watches(parts_.watches());
  if (parts_.woken) parts_.metrics.set_woken(parts_.woken());
  if (parts_.evicted) parts_.metrics.set_evicted(parts_.evicted());
  if (parts_.plans) parts_.metrics.set_plans_stored(parts_.plans());
  return {200, parts_.service.metrics_text()};
}

Reply ClusterView::cluster() {
  const ClusterFigures now = figures();
  const std::string unready = parts_.readiness.report();
  return json_reply(200, {{"ready", unready.empty()},
                          {"nodes", now.totals.nodes},
                          {"nodes_cordoned", now.cordoned},
                          {"nodes_blocked", now.blocked},
                          {"nodes_topology_unknown", now.no_topology},
                          {"states", now.states},
                          {"pods", now.totals.pods},
                          {"gpus", now.totals.gpus},
                          {"gpus_used", in_gpus(static_cast<double>(now.totals.gpu_used))},
                          {"gpus_wholly_free", now.totals.whole_free_gpus},
                          {"allocation_pct", percent(now.allocation_ratio())},
                          {"cpu_milli", {{"used", now.totals.cpu_used}, {"allocatable", now.totals.cpu_capacity}}},
                          {"fragmentation",
                           {{"gpus", in_gpus(now.fragmentation)},
                            {"pct_of_capacity", percent(now.fragmentation_ratio())},
                            {"pct_of_idle", percent(now.fragmentation_of_idle())}}},
                          {"headroom", headroom_json(now.headroom)}});
}

Reply ClusterView::node(std::string_view name) {
  std::optional<ordered_json> found;
  {
    const std::lock_guard lock(parts_.service.mutex());
    if (const auto id = parts_.cluster.find_node(name)) {
      found = node_json(parts_.cluster, *id, parts_.handlers.observations().last(name));
    }
  }
  return found ? json_reply(200, *found) : not_found("no node " + quote(name));
}

Reply ClusterView::explain(std::string_view ns, std::string_view pod) {
  if (pod.empty()) return json_reply(400, {{"error", "allowed: /v1/explain?namespace=NAMESPACE&pod=NAME"}});
  if (ns.empty()) ns = "default";
  std::array<std::int64_t, placement::kReasonCount> counts{};
  std::optional<std::string> planned;
  {
    const std::lock_guard lock(parts_.service.mutex());
    if (parts_.gangs != nullptr) {
      const ordered_json member = member_json(*parts_.gangs, *parts_.bookings, ns, pod, parts_.clock->now());
      if (!member.is_null()) return json_reply(200, member);
    }
    const AskedPod* asked = parts_.handlers.find_asked(ns, pod);
    if (asked == nullptr) {
      return not_found("pod " + quote(std::string(ns) + "/" + std::string(pod)) +
                       ": no filter for it in the last 10 minutes, or it is bound");
    }
    counts = parts_.handlers.reasons(*asked);
    if (asked->plan && parts_.cluster.find_node(asked->planned_node)) planned = asked->planned_node;
  }
  constexpr auto kFits = static_cast<std::size_t>(Reason::kNone);
  ordered_json reasons = ordered_json::array();
  std::size_t main = kFits;
  for (std::size_t i = kFits + 1; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto reason = static_cast<Reason>(i);
    if (counts[i] > (main == kFits ? 0 : counts[main])) main = i;
    reasons.push_back({{"reason", placement::reason_name(reason)},
                       {"text", placement::reason_text(reason)},
                       {"nodes", counts[i]},
                       {"could_change", !placement::is_unresolvable(reason)}});
  }
  ordered_json document = {
      {"namespace", ns}, {"pod", pod}, {"fits", counts[kFits] > 0}, {"nodes_that_fit", counts[kFits]}};
  document["planned_node"] = planned ? ordered_json(*planned) : ordered_json(nullptr);
  const bool fits = counts[kFits] > 0;
  document["main_reason"] =
      fits || main == kFits ? ordered_json(nullptr) : ordered_json(placement::reason_name(static_cast<Reason>(main)));
  document["reasons"] = std::move(reasons);
  return json_reply(200, document);
}

Reply ClusterView::gangs() {
  if (parts_.gangs == nullptr) return json_reply(200, {{"gangs", ordered_json::array()}});
  ordered_json all;
  {
    const std::lock_guard lock(parts_.service.mutex());
    all = gangs_json(*parts_.gangs, *parts_.bookings, parts_.clock->now());
  }
  return json_reply(200, all);
}

Reply ClusterView::page(bool names) {
  constexpr std::size_t kShownGangs = 100;
  std::vector<GangLine> gangs;
  if (names && parts_.gangs != nullptr) {
    const std::lock_guard lock(parts_.service.mutex());
    gangs = gangs_at_work(*parts_.gangs, *parts_.bookings, parts_.clock->now(), kShownGangs);
  }
  return {200, cluster_page(figures(), gangs, parts_.readiness.report())};
}

}  // namespace mortise::extender
