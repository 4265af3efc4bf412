#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/topology/sources/nrt_json.h"

namespace mortise::extender {

/// Takes into the books what others saw of the GPUs that pods hold, where it is certain which pods they saw. What is
/// late, incomplete or about other pods is passed over: the next look will do. Not synchronised.
class Observer {
 public:
  explicit Observer(Bookings& bookings) : bookings_(bookings) {}

  /// GPUs in use by NUMA node. Used when all pods on the node are bound and were running before the report was written,
  /// so that it has them all, and when it has as many GPUs in use as they hold, so that it has no others.
  void look_at(const topology::NodeTopologyReport& report);

 private:
  Bookings& bookings_;
};

}  // namespace mortise::extender
