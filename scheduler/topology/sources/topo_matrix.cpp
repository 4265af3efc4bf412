#include "scheduler/topology/sources/topo_matrix.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/base/quote.h"
#include "scheduler/topology/numa_mask.h"
#include "scheduler/topology/sources/text_lines.h"
#include "scheduler/topology/sources/topo_matrix_cells.h"

namespace mortise::topology {
namespace {

constexpr std::string_view kCells = "X, NV#, PIX, PXB, PHB, NODE, SYS, SOC";

struct Row {
  std::size_t line = 0;
  std::vector<Cell> cells;
  std::vector<std::string> affinities;
};

// "0", "0-1", "0,1"; "N/A" and nothing are no opinion.
Result<std::vector<int>> parse_numa_ids(std::string_view text) {
  if (text.empty() || text == "N/A") return std::vector<int>{};
  const auto ranges = parse_cpu_ranges(text);
  if (!ranges || ranges->back().last >= kMaxNumaNodes) {
    return Error{"bad NUMA affinity " + quote(text) + "; allowed: ids 0.." + std::to_string(kMaxNumaNodes - 1) +
                 " and ranges, N/A, nothing"};
  }
  std::vector<int> ids;
  for (const CpuRange& range : *ranges) {
    for (int id = range.first; id <= range.last; ++id) ids.push_back(id);
  }
  return ids;
}

class MatrixReader {
 public:
  explicit MatrixReader(std::string_view file) : file_(file) {}

  Result<Reading> read(std::string_view text) {
    lines_ = plain_lines(text);
    if (const Status status = read_header(); !status) return status.error();
    if (const Status status = read_rows(); !status) return status.error();
    if (const Status status = check_rows(); !status) return status.error();
    if (const Status status = read_nic_legend(); !status) return status.error();
    if (const Status status = fill_gpus(); !status) return status.error();
    fill_links();
    add_named_numa(reading_.machine);
    if (const Status status = check(reading_.machine); !status) return error_at(header_line_, status.message());
    return std::move(reading_);
  }

 private:
  Error error_at(std::size_t line, const std::string& what) const {
    return Error{std::string(file_) + ":" + std::to_string(line + 1) + ": " + what};
  }

  Status read_header() {
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      auto header = parse_matrix_header(lines_[line]);
      if (!header) continue;
      header_ = std::move(*header);
      header_line_ = line;
      return check_header();
    }
    return error_at(0,
                    "no line of column names; allowed: the output of nvidia-smi topo -m, with GPU0, ..., CPU Affinity");
  }

  Status check_header() {
    for (std::size_t i = 0; i < header_.devices.size(); ++i) {
      const auto& device = header_.devices[i];
      if (!column_.emplace(device.name, i).second)
        return error_at(header_line_, "column " + quote(device.name) + " twice");
      if (device.gpu) {
        gpus_.push_back(i);
      } else {
        nics_.push_back(i);
      }
    }
    for (std::size_t i = 0; i < header_.affinities.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (header_.affinities[i] == header_.affinities[j]) return error_at(header_line_, "an affinity column twice");
      }
    }
    if (gpus_.size() > kMaxGpus || nics_.size() > kMaxNics) {
      return error_at(header_line_, std::to_string(gpus_.size()) + " GPUs and " + std::to_string(nics_.size()) +
                                        " NICs; allowed: up to " + std::to_string(kMaxGpus) + " and " +
                                        std::to_string(kMaxNics));
    }
    std::sort(gpus_.begin(), gpus_.end(),
              [&](std::size_t a, std::size_t b) { return header_.devices[a].gpu < header_.devices[b].gpu; });
    return ok_status();
  }

  // Rows may stand under each other with empty lines between; the table ends at the legend, or at other text once
  // every GPU has its row.
  Status read_rows() {
    for (std::size_t line = header_line_ + 1; line < lines_.size(); ++line) {
      const std::string_view text = trim(lines_[line]);
      if (text.empty()) continue;
      if (text.starts_with("Legend:") || text.starts_with("NIC Legend:")) return ok_status();
      if (parse_matrix_header(lines_[line])) return error_at(line, "a second table; allowed: one machine");
      const auto label = row_label(text);
      if (!label) {
        if (all_gpus_read()) return ok_status();
        return error_at(line, quote(text) + " is no row of the table; rows start with a name from the header, line " +
                                  std::to_string(header_line_ + 1));
      }
      if (const Status status = read_row(line, *label); !status) return status;
    }
    return ok_status();
  }

  bool all_gpus_read() const {
    return std::all_of(gpus_.begin(), gpus_.end(), [&](std::size_t gpu) { return rows_.contains(gpu); });
  }

  // The column whose name starts the line; the longest, as mlx5_1 starts mlx5_10.
  std::optional<std::size_t> row_label(std::string_view text) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < header_.devices.size(); ++i) {
      const std::string& name = header_.devices[i].name;
      if (!text.starts_with(name)) continue;
      if (!best || header_.devices[*best].name.size() < name.size()) best = i;
    }
    return best;
  }

  Status read_row(std::size_t line, std::size_t device) {
    const std::string& name = header_.devices[device].name;
    if (rows_.contains(device)) return error_at(line, "a second row " + name);
    const std::string& text = lines_[line];
    std::string_view rest = std::string_view(text).substr(text.find(name) + name.size());
    Row row;
    row.line = line;
    while (row.cells.size() < header_.devices.size()) {
      const auto cell = take_cell(rest);
      if (!cell) return error_at(line, bad_cell(name, row.cells.size(), trim(rest)));
      const std::size_t at = row.cells.size();
      if (cell->self != (at == device)) {
        return error_at(line, "row " + name + " has " + to_text(*cell) + " under " + header_.devices[at].name +
                                  "; X stands where a device meets itself");
      }
      if (cell->nvlinks > 0 && !(header_.devices[device].gpu && header_.devices[at].gpu)) {
        return error_at(line, "row " + name + " has " + to_text(*cell) + " under " + header_.devices[at].name +
                                  "; NVLinks join GPUs only");
      }
      row.cells.push_back(*cell);
    }
    if (!header_.devices[device].gpu) {
      if (!trim(rest).empty()) return error_at(line, "row " + name + " has " + quote(trim(rest)) + " after its cells");
    } else {
      const auto values = split_affinities(rest, header_.affinities.size());
      if (!values) return error_at(line, "row " + name + " " + values.message());
      row.affinities.assign(values->begin(), values->end());
    }
    rows_.emplace(device, std::move(row));
    return ok_status();
  }

  std::string bad_cell(const std::string& row, std::size_t at, std::string_view rest) const {
    const std::string of = std::to_string(at) + " of " + std::to_string(header_.devices.size()) + " cells";
    if (rest.empty()) return "row " + row + " ends after " + of;
    return "row " + row + " has " + quote(rest.substr(0, rest.find_first_of(" \t"))) + " under " +
           header_.devices[at].name + " after " + of + "; allowed: " + std::string(kCells);
  }

  Status check_rows() {
    for (const std::size_t gpu : gpus_) {
      if (rows_.contains(gpu)) continue;
      return error_at(lines_.size() - 1,
                      "the table has no row " + header_.devices[gpu].name + ", which its header names");
    }
    for (const std::size_t nic : nics_) {
      if (rows_.contains(nic)) continue;
      reading_.notes.push_back("no row " + header_.devices[nic].name +
                               ": its links are taken from the rows of the GPUs");
    }
    return ok_status();
  }

  Status read_nic_legend() {
    bool inside = false;
    for (std::size_t line = header_line_ + 1; line < lines_.size(); ++line) {
      const std::string_view text = trim(lines_[line]);
      if (text.starts_with("NIC Legend:")) {
        inside = true;
        continue;
      }
      const std::size_t colon = text.find(':');
      if (!inside || text.empty() || colon == std::string_view::npos) continue;
      const std::string name(trim(text.substr(0, colon)));
      const std::string device(trim(text.substr(colon + 1)));
      if (!name.starts_with("NIC")) continue;
      if (!column_.contains(name))
        return error_at(line, "the NIC legend has " + quote(name) + ", which the header has not");
      if (device.empty() || !devices_.emplace(name, device).second) {
        return error_at(line, "the NIC legend has " + quote(name) + (device.empty() ? " without a device" : " twice"));
      }
    }
    return ok_status();
  }

  Status fill_gpus() {
    for (const std::size_t column : gpus_) {
      const Row& row = rows_.at(column);
      Gpu gpu;
      gpu.index = *header_.devices[column].gpu;
      for (std::size_t i = 0; i < row.affinities.size(); ++i) {
        if (const Status status = fill_affinity(gpu, row, i); !status) return status;
      }
      reading_.machine.gpus.push_back(std::move(gpu));
    }
    return fill_gpu_memory();
  }

  Status fill_affinity(Gpu& gpu, const Row& row, std::size_t at) {
    const std::string& text = row.affinities[at];
    if (header_.affinities[at] == AffinityColumn::kCpu) {
      if (text.empty() || text == "N/A") return ok_status();
      auto cpus = parse_cpu_ranges(text);
      if (!cpus) return error_at(row.line, cpus.message());
      gpu.cpus = *std::move(cpus);
      return ok_status();
    }
    const auto ids = parse_numa_ids(text);
    if (!ids) return error_at(row.line, ids.message());
    if (header_.affinities[at] == AffinityColumn::kNuma) {
      gpu.numa = *ids;
    } else if (ids->size() > 1) {
      return error_at(row.line, "bad GPU NUMA ID " + quote(text) + "; allowed: one id, N/A");
    } else if (!ids->empty()) {
      memory_nodes_.push_back({ids->front(), gpu.index});
    }
    return ok_status();
  }

  // The GPU NUMA ID names a node that holds the GPU's own memory and no CPU.
  Status fill_gpu_memory() {
    for (const auto& [id, gpu] : memory_nodes_) {
      const bool near_gpu =
          std::any_of(reading_.machine.gpus.begin(), reading_.machine.gpus.end(), [wanted = id](const Gpu& other) {
            return std::find(other.numa.begin(), other.numa.end(), wanted) != other.numa.end();
          });
      NumaNode& node = numa_node(reading_.machine, id);
      if (near_gpu || node.memory_of_gpu) {
        reading_.notes.push_back("GPU" + std::to_string(gpu) + ": GPU NUMA ID " + std::to_string(id) +
                                 " is also a node of CPUs or of another GPU; left out");
        continue;
      }
      node.memory_of_gpu = gpu;
      node.cpus = CpuRanges{};
    }
    return ok_status();
  }

  Cell cell_of(std::size_t a, std::size_t b) {
    const Cell& one = rows_.at(a).cells[b];
    const auto other_row = rows_.find(b);
    if (other_row == rows_.end() || other_row->second.cells[a] == one) return one;
    const Cell& other = other_row->second.cells[a];
    const std::string name_a = header_.devices[a].name;
    const std::string name_b = header_.devices[b].name;
    reading_.notes.push_back("the matrix is not symmetric: " + name_a + " to " + name_b + " is " + to_text(one) + ", " +
                             name_b + " to " + name_a + " is " + to_text(other) + "; the worse one is taken");
    return worse(one, other);
  }

  void fill_links() {
    for (const std::size_t column : nics_) {
      const std::string& name = header_.devices[column].name;
      const auto device = devices_.find(name);
      Nic nic;
      nic.name = name;
      // Where columns are not numbered NIC0, NIC1, ..., the name is the device.
      if (device != devices_.end()) nic.device = device->second;
      if (!(name.starts_with("NIC") && name.size() > 3 &&
            name.find_first_not_of("0123456789", 3) == std::string::npos)) {
        nic.device = name;
      }
      reading_.machine.nics.push_back(std::move(nic));
    }
    for (std::size_t a = 0; a < gpus_.size(); ++a) {
      for (std::size_t b = a + 1; b < gpus_.size(); ++b) {
        const Cell cell = cell_of(gpus_[a], gpus_[b]);
        reading_.machine.gpu_links.push_back({static_cast<int>(a), static_cast<int>(b), cell.pcie, cell.nvlinks, {}});
      }
      for (std::size_t n = 0; n < nics_.size(); ++n) {
        reading_.machine.nic_links.push_back(
            {static_cast<int>(a), static_cast<int>(n), cell_of(gpus_[a], nics_[n]).pcie});
      }
    }
  }

  std::string_view file_;
  std::vector<std::string> lines_;
  std::size_t header_line_ = 0;
  MatrixHeader header_;
  std::map<std::string, std::size_t, std::less<>> column_;
  std::vector<std::size_t> gpus_;  // columns, ascending by GPU index
  std::vector<std::size_t> nics_;  // columns in their order
  std::map<std::size_t, Row> rows_;
  std::map<std::string, std::string, std::less<>> devices_;  // NIC legend
  std::vector<std::pair<int, int>> memory_nodes_;            // NUMA id, GPU index
  Reading reading_;
};

}  // namespace

bool looks_like_topo_matrix(std::string_view text) {
  for (const std::string& line : plain_lines(text.substr(0, 65536))) {
    if (parse_matrix_header(line)) return true;
  }
  return false;
}

Result<Reading> read_topo_matrix(std::string_view text, std::string_view file) {
  return MatrixReader(file).read(text);
}

}  // namespace mortise::topology
