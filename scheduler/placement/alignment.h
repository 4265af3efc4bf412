#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "scheduler/base/ids.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/pod_ask.h"

namespace mortise::placement {

struct PodRequest;

/// Pod annotation mortise.dev/nvlink.
enum class NvlinkWish : std::uint8_t { kIgnore, kPreferred, kRequired };

/// What a pod asks of the inside of a node.
struct PodAlignment {
  /// mortise.dev/topology-policy: at least what kubelet does under this policy; none: nothing is asked.
  topology::TopologyPolicy at_least = topology::TopologyPolicy::kNone;
  bool nvlink_required = false;
  std::int32_t gpus = 0;  ///< that kubelet hands out, of the pod at one time; shares come from elsewhere
  topology::PodAsk ask;   ///< as kubelet's managers see it; GPUs are resource 0, memory type 0

  /// Whether the pod itself wants a guarantee, whatever kubelet does.
  bool wants_guarantee() const { return at_least != topology::TopologyPolicy::kNone || nvlink_required; }
};

PodAlignment alignment_of(const PodRequest& pod);

/// Interns; id 0 is for pods whose alignment does not matter anywhere.
class AlignmentTable {
 public:
  AlignmentTable() : entries_(1) {}
  AlignmentId intern(const PodRequest& pod);
  const PodAlignment& at(AlignmentId id) const { return entries_[id.index()]; }

 private:
  std::map<std::vector<std::int64_t>, AlignmentId> ids_;
  std::vector<PodAlignment> entries_;
};

}  // namespace mortise::placement
