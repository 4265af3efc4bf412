#include "scheduler/extender/service.h"

#include <utility>

#include "scheduler/extender/gang_slot.h"
#include "scheduler/extender/wire.h"
#include "scheduler/kube/objects/assigned_devices.h"

namespace mortise::extender {
namespace {

/// Filter and bind carry errors in a field of their 200 answer; kube-scheduler reads no body of any other status, but
/// prioritize and preempt have no such field.
Reply error_reply(Verb verb, const std::string& why) {
  const std::string text = answer_text(why);
  switch (verb) {
    case Verb::kFilter: {
      FilterResult result;
      result.error = text;
      return {200, write_filter_result(result)};
    }
    case Verb::kBind:
      return {200, write_binding_result(text)};
    case Verb::kPrioritize:
    case Verb::kPreempt:
      break;
  }
  return {400, text + "\n"};
}

}  // namespace

Reply Service::finish(Verb verb, Nanoseconds start, bool ok, Reply reply) {
  metrics_.count_request(verb, ok, clock_.now() - start);
  return reply;
}

Reply Service::refuse(Verb verb, const std::string& why) {
  return finish(verb, clock_.now(), false, error_reply(verb, why));
}

Reply Service::filter(std::string body) {
  const Nanoseconds start = clock_.now();
  const Result<PodQuestion> question = read_question(body);
  if (!question.ok()) return finish(Verb::kFilter, start, false, error_reply(Verb::kFilter, question.message()));
  FilterAnswer answer;
  {
    const std::lock_guard lock(mutex_);
    answer = handlers_.filter(*question);
  }
  metrics_.count_filter(answer);
  log_filter(*question, answer, clock_.now() - start);
  return finish(Verb::kFilter, start, true, {200, write_filter_result(answer.result)});
}

Reply Service::prioritize(std::string body) {
  const Nanoseconds start = clock_.now();
  const Result<PodQuestion> question = read_question(body);
  if (!question.ok()) {
    return finish(Verb::kPrioritize, start, false, error_reply(Verb::kPrioritize, question.message()));
  }
  std::vector<HostPriority> priorities;
  {
    const std::lock_guard lock(mutex_);
    priorities = handlers_.prioritize(*question);
  }
  return finish(Verb::kPrioritize, start, true, {200, write_priorities(priorities)});
}

Reply Service::bind(std::string body) {
  const Nanoseconds start = clock_.now();
  const Result<BindingArgs> args = read_binding_args(body);
  if (!args.ok()) return finish(Verb::kBind, start, false, error_reply(Verb::kBind, args.message()));
  Handlers::BindStart place;
  const std::string error = bind_and_tell(*args, place);
  log_bind(*args, place, error, clock_.now() - start);
  return finish(Verb::kBind, start, error.empty(), error_reply(Verb::kBind, error));
}

/// The plan of a gang is stored before anybody is bound by it: whoever starts after us must find it.
BindResult Service::send_binding(const BindingArgs& args, const Handlers::BindStart& start) {
  if (plans_ != nullptr && start.slot.map != nullptr) {
    const kube::Done stored = plans_->ensure(*start.slot.map);
    if (!stored.done()) {
      const bool refused = stored.outcome == kube::Outcome::kRefused;
      return {refused ? BindResult::State::kNotBound : BindResult::State::kUnknown,
              "the plan of its gang could not be stored: " + stored.detail};
    }
  }
  kube::Binding binding{args.pod_namespace, args.pod_name, args.pod_uid, args.node, {}};
  if (start.decided.order > 0) binding.annotations.emplace(kube::kDecisionAnnotation, start.decided.text());
  if (!start.devices.empty()) {
    binding.annotations.emplace(kube::kAssignedDevicesAnnotation,
                                kube::assigned_devices_text(split_devices(start.request, start.devices)));
  }
  if (!start.slot.annotation.empty()) binding.annotations.emplace(kGangSlotAnnotation, start.slot.annotation);
  return binder_->bind(binding);
}

/// The Binding is sent without the mutex: many may be on their way.
std::string Service::bind_and_tell(const BindingArgs& args, Handlers::BindStart& start) {
  {
    const std::lock_guard lock(mutex_);
    start = handlers_.start_bind(args);
  }
  if (!start.error.empty() || start.done) return start.error;
  BindResult result{BindResult::State::kBound, ""};
  if (binder_ != nullptr) result = send_binding(args, start);
  const std::lock_guard lock(mutex_);
  handlers_.finish_bind(start, args.node, result.state);
  return result.error;
}

Reply Service::preempt(std::string body) {
  const Nanoseconds start = clock_.now();
  const Result<PreemptionQuestion> question = read_preemption_question(body);
  if (!question.ok()) {
    return finish(Verb::kPreempt, start, false, error_reply(Verb::kPreempt, question.message()));
  }
  std::vector<NodeVictims> nodes;
  {
    const std::lock_guard lock(mutex_);
    nodes = handlers_.preempt(*question);
  }
  log_preempt(*question, nodes, clock_.now() - start);
  return finish(Verb::kPreempt, start, true, {200, write_preemption_result(nodes)});
}

std::string Service::metrics_text() {
  placement::ClusterTotals totals;
  double fragmentation = 0;
  std::size_t reservations = 0;
  {
    const std::lock_guard lock(mutex_);
    totals = cluster_.totals();
    fragmentation = fragmentation_.amount();
    reservations = handlers_.reservations();
  }
  metrics_.set_cluster(totals, fragmentation, reservations);
  return metrics_.text();
}

}  // namespace mortise::extender
