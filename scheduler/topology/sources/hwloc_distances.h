#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

/// One <distances2> or <distances2hetero> element: a square of values between objects.
struct HwlocDistances {
  std::string name;  ///< "NUMALatency", "NVLinkBandwidth", "XGMIBandwidth", ...
  /// "802" by os_index or gp_index, "OSDev:802" where the objects are of several types.
  std::vector<std::string> objects;
  std::vector<std::uint64_t> values;  ///< objects x objects, row by row

  std::uint64_t at(std::size_t a, std::size_t b) const { return values[a * objects.size() + b]; }
};

/// Puts NUMA distances and NVLinks into the machine. `gpu_of_object` maps gp_index to a position in its GPUs.
Status apply_distances(const HwlocDistances& distances, const std::map<std::string, int>& gpu_of_object,
                       Reading& reading);

}  // namespace mortise::topology
