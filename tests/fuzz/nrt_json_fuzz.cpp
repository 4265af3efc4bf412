// NodeResourceTopology objects and our own JSON form: any bytes give machines whose graphs hold together, or a message.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "scheduler/topology/graph.h"
#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/sources/nrt_json.h"

namespace {

void check_message(const std::string& message) {
  if (!message.starts_with("fuzz.json:") || message.find('\n') != std::string::npos) std::abort();
}

void check_machine(const mortise::topology::Machine& machine) {
  const auto graph = mortise::topology::NodeGraph::build(machine);
  if (graph && !(*graph)->check()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mortise::topology;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto reports = read_node_topologies(text, "fuzz.json")) {
    for (const NodeTopologyReport& report : *reports) check_machine(report.reading.machine);
  } else {
    check_message(reports.message());
  }
  const auto reading = read_machine_json(text, "fuzz.json");
  if (!reading) {
    check_message(reading.message());
    return 0;
  }
  check_machine(reading->machine);
  const auto again = read_machine_json(to_json_text(reading->machine), "again");
  if (!again || again->machine != reading->machine) std::abort();
  return 0;
}
