#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/node_state.h"
#include "scheduler/placement/request.h"

namespace mortise::property {

struct RankedNode {
  placement::NodeSpec spec;
  std::uint64_t rank = 0;
};

struct Event {
  bool arrival = true;
  placement::PodRequest pod;  ///< of an arrival; names are given when it is run
  std::uint32_t copies = 1;   ///< of an arrival: as many pods of this kind, one after the other
  std::uint32_t which = 0;    ///< of a departure: which of the pods held then
};

/// A small cluster, the workload that is typical of it, and what happens to it.
struct Scenario {
  std::vector<RankedNode> nodes;
  std::vector<placement::PodClass> workload;
  std::vector<Event> events;
  std::uint64_t seed = 0;
};

/// To be called inside a property: draws 1 to 12 nodes, up to 10 kinds of pods and up to 60 events. Amounts come from
/// small sets, so that equal states, equal scores, exact fits and full nodes are frequent.
Scenario any_scenario();
/// A number below `bound`, to be called inside a property.
std::uint32_t any_below(std::uint32_t bound);

std::string to_text(const placement::PodRequest& pod);
std::ostream& operator<<(std::ostream& out, const Scenario& scenario);

}  // namespace mortise::property
