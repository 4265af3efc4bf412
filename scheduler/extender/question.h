#pragma once

#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/extender/wire.h"
#include "scheduler/extender/wire_preempt.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/placement/request.h"

namespace mortise::extender {

/// Pod annotation: `decisive` (the default) or `advisory`.
inline constexpr std::string_view kPlacementAnnotation = "mortise.dev/placement";

/// A filter or prioritize request, understood; of a preempt request the pod.
struct PodQuestion {
  placement::PodRequest pod;  ///< names are set even when `invalid` is not empty
  std::string invalid;        ///< why no node can ever take the pod; empty: the request is sound
  std::string group;          ///< NAMESPACE/NAME of its native pod group; empty: none
  bool decisive = true;
  bool preempts = true;   ///< false: preemptionPolicy Never
  std::string scheduler;  ///< spec.schedulerName; empty: default-scheduler
  kube::Pod object;       ///< as it came
  ExtenderArgs args;

  /// Asks for nothing we manage.
  bool unmanaged() const { return invalid.empty() && pod.gpus == 0; }
};

/// An error means the call itself cannot be answered (no Pod, or one of the wrong form).
Result<PodQuestion> read_question(std::string& body);

/// A preempt request, understood; `pod.args` is empty.
struct PreemptionQuestion {
  PodQuestion pod;
  PreemptionArgs args;
};

Result<PreemptionQuestion> read_preemption_question(std::string& body);

/// Fit for an answer: kube-scheduler has passed our texts through a format function, so no `%`; and they are repeated
/// per node in events, so not too long.
std::string answer_text(std::string_view text);

}  // namespace mortise::extender
