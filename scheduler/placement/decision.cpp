#include "scheduler/placement/decision.h"

#include <array>

namespace mortise::placement {

namespace {
struct ReasonInfo {
  Reason reason;
  std::string_view name;
  std::string_view text;
  bool unresolvable;
};

constexpr std::array<ReasonInfo, kReasonCount> kReasons = {{
    {Reason::kNone, "None", "None: the node fits", false},
    {Reason::kInsufficientGpu, "InsufficientGpu", "InsufficientGpu: not enough free GPUs", false},
    {Reason::kInsufficientCpu, "InsufficientCpu", "InsufficientCpu: not enough free CPU", false},
    {Reason::kInsufficientMemory, "InsufficientMemory", "InsufficientMemory: not enough free memory", false},
    {Reason::kTooManyPods, "TooManyPods", "TooManyPods: the node's pod limit is reached", false},
    {Reason::kTopologyAffinity, "TopologyAffinity", "TopologyAffinity: kubelet may refuse to align the pod on the node",
     false},
    {Reason::kTopologyGuarantee, "TopologyGuarantee",
     "TopologyAffinity: node policy cannot guarantee what the pod asks with the GPUs that are free", false},
    {Reason::kTopologyState, "TopologyState", "TopologyAffinity: which GPUs and CPUs of the node are held is not known",
     false},
    {Reason::kCordoned, "Cordoned", "Cordoned: the node is marked unschedulable", true},
    {Reason::kUnknownNode, "UnknownNode", "UnknownNode: not known yet", false},
    {Reason::kNodeBlocked, "NodeBlocked", "NodeBlocked: what the node's pods hold is not known", false},
    {Reason::kNoGpu, "NoGpu", "NoGpu: the node has no GPU", true},
    {Reason::kTooFewGpus, "TooFewGpus", "TooFewGpus: the node has fewer GPUs than asked for", true},
    {Reason::kGpuModel, "GpuModel", "GpuModel: the node's GPU model is not allowed", true},
    {Reason::kTopologyUnknown, "TopologyUnknown", "TopologyAffinity: the node's topology is not known", true},
    {Reason::kTopologyNever, "TopologyNever",
     "TopologyAffinity: kubelet does not admit the pod, or cannot guarantee what it asks, even on the empty node",
     true},
    {Reason::kNodeTooSmall, "NodeTooSmall", "NodeTooSmall: the node has less CPU, memory or pods than asked for", true},
    {Reason::kInvalidRequest, "InvalidRequest", "InvalidRequest: the request cannot be met by any node", true},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (static_cast<std::size_t>(kReasons[i].reason) != i) return false;
  }
  return true;
}
static_assert(in_order());

const ReasonInfo& info(Reason reason) {
  return kReasons[static_cast<std::size_t>(reason)];
}
}  // namespace

std::string_view reason_text(Reason reason) {
  return info(reason).text;
}
std::string_view reason_name(Reason reason) {
  return info(reason).name;
}
bool is_unresolvable(Reason reason) {
  return info(reason).unresolvable;
}

}  // namespace mortise::placement
