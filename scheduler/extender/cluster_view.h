#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/extender/cluster_figures.h"
#include "scheduler/extender/gang_view.h"
#include "scheduler/extender/gangs.h"
#include "scheduler/extender/handlers.h"
#include "scheduler/extender/metrics.h"
#include "scheduler/extender/readiness.h"
#include "scheduler/extender/service.h"
#include "scheduler/placement/cluster_state.h"
#include "scheduler/placement/engine.h"
#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/headroom.h"

namespace mortise::extender {

/// What people may ask about the cluster and the pods that asked. Thread-safe: takes the service's mutex, and changes
/// nothing that it guards.
class ClusterView {
 public:
  /// What the view looks at. All must outlive it.
  struct Parts {
    Service& service;
    placement::ClusterState& cluster;
    placement::Engine& engine;
    placement::FragmentationMeter& fragmentation;
    Handlers& handlers;
    Metrics& metrics;
    const Readiness& readiness;
    std::function<std::vector<WatchFigures>()> watches = {};                ///< empty: nothing is watched
    const Gangs* gangs = nullptr;                                           ///< null: there are none
    const Bookings* bookings = nullptr;                                     ///< of the gangs
    const Clock* clock = nullptr;                                           ///< likewise
    std::function<std::pair<std::uint64_t, std::uint64_t>()> woken = {};    ///< members woken; failures of that
    std::function<std::pair<std::uint64_t, std::uint64_t>()> evicted = {};  ///< members evicted; failures of that
    std::function<std::pair<std::uint64_t, std::uint64_t>()> plans = {};    ///< plans stored; failures of that
  };
  explicit ClusterView(const Parts& parts);

  /// GET /metrics
  Reply metrics();
  /// GET /v1/cluster
  Reply cluster();
  /// GET /v1/nodes/NAME
  Reply node(std::string_view name);
  /// GET /v1/explain: why a pod that asked, and is not bound, fits where it does not.
  Reply explain(std::string_view ns, std::string_view pod);
  /// GET /v1/gangs: who is there, who has a place, and what they wait for.
  Reply gangs();
  /// GET /: the same as /v1/cluster, for people. Names of gangs are told or not.
  Reply page(bool names);

 private:
  ClusterFigures figures();

  Parts parts_;
  placement::HeadroomMeter headroom_;  // guarded by the service's mutex
};

/// The page of these figures and gangs. `unready` is empty when the extender is ready.
std::string cluster_page(const ClusterFigures& figures, const std::vector<GangLine>& gangs, std::string_view unready);

}  // namespace mortise::extender
