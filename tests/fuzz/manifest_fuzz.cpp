// Manifests: any bytes give pods and gangs, or one line that names the file.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/asks.h"
#include "sim/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto expect_line = [](const std::string& message) {
    if (!message.starts_with("fuzz.yaml") || message.find('\n') != std::string::npos) std::abort();
  };
  const auto manifest =
      mortise::sim::parse_manifest(std::string(reinterpret_cast<const char*>(data), size), "fuzz.yaml");
  if (!manifest) {
    expect_line(manifest.message());
    return 0;
  }
  const auto asks = mortise::sim::asks_of(*manifest);
  if (!asks) {
    expect_line(asks.message());
    return 0;
  }
  std::size_t members = 0;
  for (const mortise::sim::Ask& ask : *asks) members += static_cast<std::size_t>(ask.members);
  if (members != manifest->pods.size()) std::abort();
  return 0;
}
