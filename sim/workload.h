#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/placement/fragmentation.h"
#include "scheduler/placement/request.h"
#include "traces/workload.h"

namespace mortise::sim {

/// A trace's pods as placement sees them. Made once per trace and shared by all its runs.
class Workload {
 public:
  explicit Workload(traces::Trace trace);

  const traces::Trace& trace() const { return trace_; }
  /// One entry per pod of the trace, for the distribution of typical pods.
  std::span<const placement::PodClass> classes() const { return classes_; }
  /// What the pods ask for, each distinct request once and without a name.
  std::span<const placement::PodRequest> requests() const { return requests_; }
  /// Index into requests(), by index of the pod in the trace.
  std::uint32_t request_of(std::uint32_t pod) const { return request_of_[pod]; }

 private:
  traces::Trace trace_;
  std::vector<placement::PodClass> classes_;
  std::vector<placement::PodRequest> requests_;
  std::vector<std::uint32_t> request_of_;
};

}  // namespace mortise::sim
