#include "traces/node_csv.h"

#include <limits>
#include <unordered_map>
#include <utility>

#include "traces/csv.h"
#include "traces/limits.h"

namespace mortise::traces {

namespace {

enum Column : std::size_t { kName, kCpu, kMemory, kGpus, kModel };

Result<NodeRecord> read_row(const CsvReader& csv) {
  auto name = csv.name(kName);
  if (!name) return name.error();
  const auto cpu = csv.number(kCpu, 0, kMaxCpuMilli);
  if (!cpu) return cpu.error();
  const auto memory = csv.number(kMemory, 0, kMaxMemoryMib);
  if (!memory) return memory.error();
  const auto gpus = csv.number(kGpus, 0, kMaxGpus);
  if (!gpus) return gpus.error();
  NodeRecord node{*std::move(name), *cpu, *memory * kMiB, static_cast<std::int32_t>(*gpus), {}};
  if (node.gpus > 0) {
    node.model = csv.text(kModel);
    if (node.model.empty()) {
      return csv.error("node '" + node.name + "' has " + std::to_string(node.gpus) +
                       " GPUs and no model; allowed: a model name wherever gpu is above 0");
    }
  }
  return node;
}

}  // namespace

Result<std::vector<NodeRecord>> read_node_csv(std::istream& in, const std::string& file_name) {
  CsvReader csv(in, file_name);
  if (const Status header = csv.read_header(kNodeColumns, std::size(kNodeColumns)); !header) return header.error();
  std::vector<NodeRecord> nodes;
  std::unordered_map<std::string, std::size_t> line_of;
  Bytes total_memory = 0;
  while (true) {
    const auto more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    auto node = read_row(csv);
    if (!node) return node.error();
    const auto [first, is_new] = line_of.emplace(node->name, csv.line());
    if (!is_new) {
      return csv.error("node '" + node->name + "' is already on line " + std::to_string(first->second) +
                       "; allowed: each name once");
    }
    if (node->memory > std::numeric_limits<Bytes>::max() - total_memory) {
      return csv.error("the memory of all nodes up to here overflows; allowed: less than 8 EiB together");
    }
    total_memory += node->memory;
    nodes.push_back(*std::move(node));
  }
  if (nodes.empty()) return csv.error("no nodes after the header; allowed: one row or more");
  return nodes;
}

void write_node_csv(std::ostream& out, std::span<const NodeRecord> nodes) {
  out << "sn,cpu_milli,memory_mib,gpu,model\n";
  for (const NodeRecord& node : nodes) {
    out << csv_field(node.name) << ',' << node.cpu << ',' << node.memory / kMiB << ',' << node.gpus << ','
        << csv_field(node.model) << '\n';
  }
}

}  // namespace mortise::traces
