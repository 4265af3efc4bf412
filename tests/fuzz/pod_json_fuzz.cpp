#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "scheduler/kube/objects/assigned_devices.h"
#include "scheduler/kube/objects/pod.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise;
  const auto pod = kube::parse_pod({reinterpret_cast<const char*>(data), size});
  if (!pod.ok()) return 0;
  for (const auto& [name, value] : pod->annotations) {
    if (name == kube::kAssignedDevicesAnnotation) (void)kube::parse_assigned_devices(value);
  }
  const auto request = kube::pod_request(*pod);
  if (!request.ok()) {
    // The message goes through a format string of kube-scheduler.
    if (request.message().empty() || request.message().find('%') != std::string::npos) std::abort();
    return 0;
  }
  if (request->gpus < 0 || request->cpu < 0 || request->memory < 0) std::abort();
  if (request->gpu_milli < 1 || request->gpu_milli > kWholeGpu) std::abort();
  return 0;
}
