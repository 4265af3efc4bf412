#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/placement/device_set.h"

namespace mortise::placement {

/// How good a candidate is, 0..kMaxScore, larger is better.
using Score = std::int32_t;
inline constexpr Score kMaxScore = 1'000'000;

/// Why a node cannot take a pod. Texts and resolvability: reason_text(), is_unresolvable().
enum class Reason : std::uint8_t {
  kNone,                ///< the node fits
  kInsufficientGpu,     ///< GPUs are there but taken
  kInsufficientCpu,     ///< busy
  kInsufficientMemory,  ///< busy
  kTooManyPods,         ///< the node's pod limit is reached
  kTopologyAffinity,    ///< kubelet may refuse to align the pod with what is free
  kTopologyGuarantee,   ///< what the pod asks of the topology may not be met with what is free
  kTopologyState,       ///< which of the node's GPUs, CPUs or memory are held is not known
  kCordoned,            ///< spec.unschedulable
  kUnknownNode,         ///< not in the cluster state (yet)
  kNodeBlocked,         ///< what the node's pods hold is not known
  kNoGpu,               ///< the node has no GPU at all
  kTooFewGpus,          ///< more GPUs asked for than the node has
  kGpuModel,            ///< none of the allowed models
  kTopologyUnknown,     ///< the pod asks for something of the topology, and the node's is not known
  kTopologyNever,       ///< even the empty node would not meet what the pod and its kubelet ask of the topology
  kNodeTooSmall,        ///< more CPU, memory or pods asked for than the node has
  kInvalidRequest,      ///< the request itself cannot be met by any node
};
inline constexpr int kReasonCount = static_cast<int>(Reason::kInvalidRequest) + 1;

/// The constant text of a reason, e.g. "InsufficientGpu: not enough free GPUs".
std::string_view reason_text(Reason reason);
/// The constant name of a reason, e.g. "InsufficientGpu".
std::string_view reason_name(Reason reason);
/// True when removing other pods from the node cannot help.
bool is_unresolvable(Reason reason);

struct NodeAnswer {
  NodeId node;
  Reason reason = Reason::kNone;
  Score score = 0;  ///< of no meaning unless reason is kNone
};

/// The pod fits: on this node, with these devices (one, when it asks for a share; none, when for no GPU).
struct Placed {
  NodeId node;
  DeviceSet devices;
  Score score = 0;
};

/// No candidate fits.
struct Rejected {
  /// The reason given by most nodes; ties: the first in the order of the enum.
  Reason main_reason = Reason::kInvalidRequest;
};

/// A gang member that waits for the others: `have` of `need` are known.
struct Wait {
  std::int32_t have = 0;
  std::int32_t need = 0;
};

using Decision = std::variant<Placed, Rejected, Wait>;

}  // namespace mortise::placement
