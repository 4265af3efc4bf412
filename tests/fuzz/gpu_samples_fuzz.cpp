#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "scheduler/kube/objects/gpu_samples.h"
#include "scheduler/placement/device_set.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise;
  const auto samples = kube::parse_gpu_samples({reinterpret_cast<const char*>(data), size});
  if (!samples.ok()) {
    if (samples.message().empty() || samples.message().find_first_of("\r\n") != std::string::npos) std::abort();
    return 0;
  }
  for (const kube::GpuSample& sample : *samples) {
    if (sample.pod.empty() || sample.gpu < 0 || sample.gpu >= placement::kMaxDevices || sample.at < 0) std::abort();
  }
  return 0;
}
