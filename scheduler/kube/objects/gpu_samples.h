#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"

namespace mortise::kube {

/// A series of the DCGM exporter that names the pod on a GPU.
struct GpuSample {
  std::vector<std::string> nodes;  ///< labels that may have the node's name; the exporter's host name may be its pod's
  int gpu = 0;                     ///< index, as nvidia-smi counts
  std::string ns;
  std::string pod;
  std::string pod_uid;  ///< empty: not told
  Nanoseconds at = 0;   ///< when it was scraped, since 1970
};

/// What to ask Prometheus for: the labels of one series for each GPU, and when it was scraped last.
inline constexpr std::string_view kGpuSamplesQuery = "timestamp(DCGM_FI_DEV_GPU_UTIL)";

/// Reads the answer of /api/v1/query to that. Series without a pod, of a MIG device or without an index are left out.
Result<std::vector<GpuSample>> parse_gpu_samples(std::string_view json);

}  // namespace mortise::kube
