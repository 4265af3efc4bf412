#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/extender/bookings.h"
#include "scheduler/kube/objects/gpu_samples.h"
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

  /// The exporter asks kubelet every 30 s by default and tells what it heard last: a younger pod of the same name would
  /// be taken for the one before it.
  static constexpr Nanoseconds kExporterLag = 30 * kSecond;

  /// Devices by pod. Used when the pod of that name is bound on that node, and is known to be the same one, by its UID
  /// or because it had started well before; and when it has as many GPUs as it asks for, which no other pod has.
  void look_at(const std::vector<kube::GpuSample>& samples);

 private:
  void look_at_node(const std::string& name, const std::vector<const kube::GpuSample*>& samples);

  Bookings& bookings_;
};

}  // namespace mortise::extender
