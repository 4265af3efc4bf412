#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/admission.h"
#include "scheduler/topology/hints.h"
#include "scheduler/topology/kubelet_config.h"
#include "scheduler/topology/node_state.h"
#include "scheduler/topology/pod_ask.h"

namespace mortise::topology {

/// A device plugin's GetPreferredAllocation: which `size` of `available`, `must_include` among them, it would like.
/// Kubelet takes what of the answer it can use. An error fails the pod's admission. Must be a pure function.
using PreferredAllocation = std::function<Result<IndexSet>(std::size_t resource, const IndexSet& available,
                                                           const IndexSet& must_include, std::int64_t size)>;

/// What changes in the device manager for one resource while a pod's containers are admitted one by one.
///
/// Where kubelet picks some of several alike devices, `available` and `reusable` hold representatives: devices of one
/// orbit are interchangeable, and in an `open` orbit it is not known which ones were picked.
struct DeviceUse {
  IndexSet available;
  IndexSet reusable;
  std::vector<std::uint16_t> orbit;  ///< by device
  std::vector<bool> open;            ///< by orbit

  /// `fixed`, if there is one, is the affinity that every container of the pod gets whatever devices are picked: then
  /// devices are alike that are alike under this affinity; else those with the same NUMA nodes.
  static DeviceUse of(const DeviceResource& resource, const KubeletRules& rules, std::optional<NumaMask> fixed);
};

/// Hints for `asked` devices of a container, or of the whole pod.
HintList device_hints(const NodeState& node, const KubeletConfig& config, const DeviceUse& use,
                      const ContainerAsk& container, const DeviceAsk& ask);
HintList device_hints(const NodeState& node, const KubeletConfig& config, const DeviceUse& use, const PodAsk& pod,
                      const DeviceAsk& ask);

/// The pod's asks as kubelet sums them.
std::vector<DeviceAsk> devices_of_pod(const PodAsk& pod);

/// One possible result of an allocation.
struct DeviceResult {
  DeviceUse use;
  DeviceGrant grant;
};

/// How an allocation is to be followed.
struct DeviceFollowUp {
  bool last = false;      ///< no later container asks for the resource: an open choice need not be told apart
  std::size_t limit = 0;  ///< results at most
  bool complete = true;   ///< becomes false when there are more
};

/// Allocates under `affinity`; `results` receives every possible result that matters for what follows.
Refusal allocate_devices(const NodeState& node, const KubeletRules& rules, const DeviceUse& use,
                         const ContainerAsk& container, const DeviceAsk& ask, NumaMask affinity,
                         const PreferredAllocation& preferred, DeviceFollowUp& follow_up,
                         std::vector<DeviceResult>& results);

/// The NUMA nodes whose subsets kubelet enumerates for the resource's hints; 0: it makes none.
NumaMask hint_nodes(const NodeState& node, const KubeletRules& rules, std::size_t resource);

/// Whether kubelet aligns the resource at all.
bool is_aligned(const DeviceResource& resource, const KubeletRules& rules);

}  // namespace mortise::topology
