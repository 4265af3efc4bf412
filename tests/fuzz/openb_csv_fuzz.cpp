// Pod lists: any bytes give a trace or a message, and what was read is written and read back the same.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "traces/formats.h"
#include "traces/openb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // A row of sixteen bytes may stand for sixteen thousand pods.
  constexpr std::size_t kMostWithGangs = 512;
  if (size > kMostWithGangs && text.find("gang_size") != std::string::npos) return 0;
  std::istringstream in(text);
  const auto trace = mortise::traces::read_trace(in, "fuzz.csv");
  if (!trace) {
    if (!trace.message().starts_with("fuzz.csv:") || trace.message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  std::stringstream first;
  mortise::traces::write_openb_pods(first, trace->pods);
  const auto again = mortise::traces::read_openb(first, "again.csv");
  if (!again) std::abort();
  std::ostringstream second;
  mortise::traces::write_openb_pods(second, again->pods);
  if (first.str() != second.str()) std::abort();
  return 0;
}
