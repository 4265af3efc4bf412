// Node lists: any bytes give nodes or a message, and what was read is written and read back the same.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "traces/node_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto nodes = mortise::traces::read_node_csv(in, "fuzz.csv");
  if (!nodes) {
    if (!nodes.message().starts_with("fuzz.csv:") || nodes.message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  std::stringstream first;
  mortise::traces::write_node_csv(first, *nodes);
  const auto again = mortise::traces::read_node_csv(first, "again.csv");
  if (!again) std::abort();
  std::ostringstream second;
  mortise::traces::write_node_csv(second, *again);
  if (first.str() != second.str()) std::abort();
  return 0;
}
