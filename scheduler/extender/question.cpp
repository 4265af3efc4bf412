#include "scheduler/extender/question.h"

#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::extender {
namespace {

constexpr std::size_t kMaxTextBytes = 256;

/// Reads the annotation; an unknown value is the pod's own fault.
void read_mode(const kube::Pod& pod, PodQuestion& question) {
  const auto found = pod.annotations.find(std::string(kPlacementAnnotation));
  if (found == pod.annotations.end() || found->second == "decisive") return;
  if (found->second == "advisory") {
    question.decisive = false;
  } else if (question.invalid.empty()) {
    question.invalid = "annotation " + std::string(kPlacementAnnotation) + " is " + quote(found->second) +
                       "; allowed: decisive, advisory";
  }
}

Result<PodQuestion> read_pod(std::string_view json) {
  if (json.empty()) return Error{"request has no Pod"};
  Result<kube::Pod> pod = kube::parse_pod(json);
  if (!pod.ok()) return Error{"Pod: " + pod.message()};

  PodQuestion question;
  Result<placement::PodRequest> request = kube::pod_request(*pod);
  if (request.ok()) {
    question.pod = *std::move(request);
  } else {
    question.invalid = request.message();
  }
  question.pod.ns = pod->ns;
  question.pod.name = pod->name;
  question.pod.uid = pod->uid;
  question.pod.priority = pod->priority;
  if (!pod->pod_group.empty()) question.group = (pod->ns.empty() ? "default" : pod->ns) + "/" + pod->pod_group;
  question.preempts = pod->preemption_policy != "Never";
  question.scheduler = pod->scheduler_name;
  read_mode(*pod, question);
  if (!question.invalid.empty()) question.invalid = answer_text("InvalidRequest: " + question.invalid);
  question.object = *std::move(pod);
  return question;
}

}  // namespace

std::string answer_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += " percent";
    } else {
      out += c;
    }
  }
  if (out.size() <= kMaxTextBytes) return out;
  std::size_t end = kMaxTextBytes;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;  // not inside a UTF-8 character
  out.resize(end);
  return out + "...";
}

Result<PodQuestion> read_question(std::string& body) {
  Result<ExtenderArgs> args = read_extender_args(body);
  if (!args.ok()) return args.error();
  Result<PodQuestion> question = read_pod(args->pod);
  if (question.ok()) question->args = *std::move(args);
  return question;
}

Result<PreemptionQuestion> read_preemption_question(std::string& body) {
  Result<PreemptionArgs> args = read_preemption_args(body);
  if (!args.ok()) return args.error();
  Result<PodQuestion> pod = read_pod(args->pod);
  if (!pod.ok()) return pod.error();
  return PreemptionQuestion{*std::move(pod), *std::move(args)};
}

}  // namespace mortise::extender
