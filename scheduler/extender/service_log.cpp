#include "scheduler/extender/service.h"
#include "scheduler/placement/decision.h"
#include "scheduler/placement/device_list.h"

namespace mortise::extender {
namespace {

std::string pod_key(std::string_view ns, std::string_view name) {
  return std::string(ns.empty() ? "default" : ns) + "/" + std::string(name);
}

double seconds(Nanoseconds took) {
  return static_cast<double>(took) / static_cast<double>(kSecond);
}

/// The one node that passed; empty when none or several did.
std::string only_node(const FilterResult& result) {
  std::string name;
  for (const NodeVerdict& node : result.nodes) {
    if (node.verdict != Verdict::kPassed) continue;
    if (!name.empty()) return {};
    name = node.name;
  }
  return name;
}

}  // namespace

void Service::log_filter(const PodQuestion& question, const FilterAnswer& answer, Nanoseconds took) {
  if (log_ == nullptr || !log_->wants(LogLevel::kDebug)) return;
  const bool rejected = answer.outcome == Outcome::kRejected;
  log_->write(LogLevel::kDebug, "filter",
              {{"pod", pod_key(question.pod.ns, question.pod.name)},
               {"uid", question.pod.uid},
               {"candidates", static_cast<std::int64_t>(answer.result.nodes.size())},
               {"outcome", std::string(outcome_name(answer.outcome))},
               {"node", only_node(answer.result)},
               {"reason", rejected ? std::string(reason_name(answer.main_reason)) : question.invalid},
               {"seconds", seconds(took)}});
}

void Service::log_bind(const BindingArgs& args, const Handlers::BindStart& start, const std::string& error,
                       Nanoseconds took) {
  if (log_ == nullptr) return;
  const std::string pod = pod_key(args.pod_namespace, args.pod_name);
  if (!error.empty()) {
    log_->write(
        LogLevel::kWarn, "not_bound",
        {{"pod", pod}, {"uid", args.pod_uid}, {"node", args.node}, {"error", error}, {"seconds", seconds(took)}});
    return;
  }
  log_->write(LogLevel::kInfo, "bound",
              {{"pod", pod},
               {"uid", args.pod_uid},
               {"node", args.node},
               {"devices", placement::device_list(start.devices)},
               {"seconds", seconds(took)}});
}

void Service::log_preempt(const PreemptionQuestion& question, const std::vector<NodeVictims>& nodes, Nanoseconds took) {
  if (log_ == nullptr || !log_->wants(LogLevel::kDebug)) return;
  log_->write(LogLevel::kDebug, "preempt",
              {{"pod", pod_key(question.pod.pod.ns, question.pod.pod.name)},
               {"uid", question.pod.pod.uid},
               {"candidates", static_cast<std::int64_t>(question.args.candidates.size())},
               {"nodes", static_cast<std::int64_t>(nodes.size())},
               {"seconds", seconds(took)}});
}

}  // namespace mortise::extender
