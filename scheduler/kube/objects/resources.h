#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::kube {

enum class Meaning {
  kCpu,       ///< amounts in milli-CPU
  kMemory,    ///< amounts in bytes
  kPods,      ///< how many pods
  kGpus,      ///< how many whole GPUs
  kGpuShare,  ///< thousandths of one GPU
};

struct ResourceInfo {
  std::string_view name;
  Meaning meaning;
  bool of_nodes;  ///< counts in a node's allocatable
  bool of_pods;   ///< counts in a container's requests and limits
};

/// What each resource name means. Names that are not in it mean nothing to placement. Of several rows of one meaning
/// a node counts the first it has.
std::span<const ResourceInfo> resource_table();

/// A written quantity as an amount in the unit of the resource's meaning: fractions of CPU and memory are rounded up
/// as Kubernetes does, fractions of anything else and negative amounts are refused.
Result<std::int64_t> resource_amount(const ResourceInfo& resource, std::string_view quantity);

/// The amount of one resource in `list`, else in `otherwise`; empty when neither has it.
Result<std::optional<std::int64_t>> listed_amount(const ResourceInfo& resource, const ResourceList& list,
                                                  const ResourceList& otherwise);

}  // namespace mortise::kube
