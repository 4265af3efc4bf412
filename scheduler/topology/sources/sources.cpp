#include "scheduler/topology/machine_json.h"
#include "scheduler/topology/sources/hwloc_xml.h"
#include "scheduler/topology/sources/nrt_json.h"
#include "scheduler/topology/sources/source.h"
#include "scheduler/topology/sources/synthetic.h"
#include "scheduler/topology/sources/topo_matrix.h"

namespace mortise::topology {
namespace {

constexpr Source kSources[] = {
    {"annotation", "our own JSON form, as `mortise topo --annotate` prints it", looks_like_machine_json,
     read_machine_json},
    {"nrt", "a NodeResourceTopology object as JSON", looks_like_nrt_json, read_nrt_json},
    {"hwloc", "hwloc XML, as `lstopo --of xml` prints it", looks_like_hwloc_xml, read_hwloc_xml},
    {"synthetic", "one line like `numa:2 gpu:4 nvswitch:1`", looks_like_synthetic, read_synthetic},
    {"matrix", "what `nvidia-smi topo -m` prints", looks_like_topo_matrix, read_topo_matrix},
};

}  // namespace

std::span<const Source> source_table() {
  return kSources;
}

Result<Reading> read_any_source(std::string_view text, std::string_view file) {
  std::string known;
  for (const Source& source : kSources) {
    if (source.recognises(text)) return source.read(text, file);
    known.append(known.empty() ? "" : "; ").append(source.description);
  }
  return Error{std::string(file) + ":1: no topology that is known; allowed: " + known};
}

}  // namespace mortise::topology
