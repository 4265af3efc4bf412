#include "scheduler/placement/node_state.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "scheduler/base/rng.h"

namespace mortise::placement {

GpuPodKinds gpu_pod_kind(std::int32_t gpus, MilliGpu gpu_milli) {
  if (gpus == 0) return 0;
  const int bit = gpu_milli < kWholeGpu ? 0 : std::min(gpus, 31);
  return GpuPodKinds{1} << bit;
}

int NodeState::whole_free() const {
  return static_cast<int>(std::count(free.begin(), free.begin() + devices, std::int16_t{kWholeGpu}));
}

MilliGpu NodeState::milli_free() const {
  return std::accumulate(free.begin(), free.begin() + devices, MilliGpu{0});
}

bool operator==(const NodeState& a, const NodeState& b) {
  return a.machine == b.machine && a.pods_free == b.pods_free && a.cpu_free == b.cpu_free &&
         a.memory_free == b.memory_free && a.kinds == b.kinds && a.belief == b.belief && a.devices == b.devices &&
         std::equal(a.free.begin(), a.free.begin() + a.devices, b.free.begin());
}

std::uint64_t NodeState::hash() const {
  std::uint64_t h = mix64((std::uint64_t{machine.value} << 32) | static_cast<std::uint32_t>(pods_free));
  h = mix64(h ^ static_cast<std::uint64_t>(cpu_free));
  h = mix64(h ^ static_cast<std::uint64_t>(memory_free));
  h = mix64(h ^ ((std::uint64_t{kinds} << 8) | devices) ^ (std::uint64_t{belief.value} << 40));
  for (std::size_t i = 0; i < devices; i += 4) {
    std::uint64_t four = 0;
    const std::size_t count = std::min<std::size_t>(4, devices - i);
    std::memcpy(&four, free.data() + i, count * sizeof(std::int16_t));
    h = mix64(h ^ four);
  }
  return h;
}

}  // namespace mortise::placement
