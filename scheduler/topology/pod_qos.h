#pragma once

#include <cstdint>
#include <limits>

#include "scheduler/base/units.h"
#include "scheduler/topology/pod_ask.h"

namespace mortise::topology {

/// CPU and memory of a container or pod; 0 is the same as not given.
struct ComputeAmounts {
  MilliCpu cpu = 0;
  Bytes memory = 0;
  friend bool operator==(const ComputeAmounts&, const ComputeAmounts&) = default;
};

/// The sums from which Kubernetes derives the QoS class (pkg/apis/core/v1/helper/qos): over all containers, init
/// containers included, or once for spec.resources of a pod that sets them. Requests are those after defaulting.
class QosSums {
 public:
  void add(const ComputeAmounts& requests, const ComputeAmounts& limits) {
    add(requests, requests_);
    add(limits, limits_);
    all_limited_ = all_limited_ && limits.cpu > 0 && limits.memory > 0;
  }

  QosClass classify() const {
    if (requests_ == ComputeAmounts{} && limits_ == ComputeAmounts{}) return QosClass::kBestEffort;
    return all_limited_ && requests_ == limits_ ? QosClass::kGuaranteed : QosClass::kBurstable;
  }

 private:
  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max();
    return a > kTop - b ? kTop : a + b;
  }
  static void add(const ComputeAmounts& more, ComputeAmounts& total) {
    total.cpu = sum(total.cpu, more.cpu);
    total.memory = sum(total.memory, more.memory);
  }

  ComputeAmounts requests_;
  ComputeAmounts limits_;
  bool all_limited_ = true;
};

}  // namespace mortise::topology
