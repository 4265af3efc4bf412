// nvidia-smi's matrices: any bytes give a machine whose graph holds together, or a message of one line with the line.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "scheduler/topology/graph.h"
#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/sources/topo_matrix.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise::topology;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto reading = read_topo_matrix(text, "fuzz.txt");
  if (!reading) {
    if (!reading.message().starts_with("fuzz.txt:") || reading.message().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto graph = NodeGraph::build(reading->machine);
  if (!graph || !(*graph)->check()) std::abort();
  // Names that are not UTF-8 do not survive JSON.
  const auto again = read_machine_json(to_json_text(reading->machine), "again");
  if (again && again->machine.gpu_links != reading->machine.gpu_links) std::abort();
  return 0;
}
