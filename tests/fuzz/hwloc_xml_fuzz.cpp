// hwloc XML: any bytes give a machine whose graph holds together, or a message of one line with the line.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "scheduler/topology/graph.h"
#include "scheduler/topology/sources/hwloc_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise::topology;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto reading = read_hwloc_xml(text, "fuzz.xml");
  if (!reading) {
    if (!reading.message().starts_with("fuzz.xml:") || reading.message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto graph = NodeGraph::build(reading->machine);
  if (graph && !(*graph)->check()) std::abort();
  return 0;
}
