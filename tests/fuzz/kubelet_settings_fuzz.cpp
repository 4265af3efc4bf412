#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "scheduler/kube/objects/kubelet_settings.h"
#include "scheduler/topology/numa_mask.h"

// Any annotation is read, or refused with one line; what is read lies within the bounds that its users rely on.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise;
  const auto settings = kube::parse_kubelet_settings({reinterpret_cast<const char*>(data), size});
  if (!settings) {
    if (settings.message().empty() || settings.message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (settings->facts.max_numa_nodes && *settings->facts.max_numa_nodes < 8) std::abort();
  if (settings->reserved_memory) {
    if (settings->reserved_memory->size() > static_cast<std::size_t>(topology::kMaxNumaNodes)) std::abort();
    for (const Bytes bytes : *settings->reserved_memory) {
      if (bytes < 0) std::abort();
    }
  }
  return 0;
}
