#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/machine.h"

namespace mortise::topology {

/// A value of the matrix.
struct Cell {
  bool self = false;  ///< X
  int nvlinks = 0;    ///< NV#
  LinkClass pcie = LinkClass::kUnknown;
  friend bool operator==(const Cell&, const Cell&) = default;
};

std::string to_text(const Cell& cell);

/// The slower of two.
const Cell& worse(const Cell& a, const Cell& b);

/// Takes one cell from the front; no cell spelling is the start of another, so blanks between them may be missing.
std::optional<Cell> take_cell(std::string_view& text);

enum class AffinityColumn { kCpu, kNuma, kGpuNuma };

struct MatrixHeader {
  struct Device {
    std::optional<int> gpu;  ///< index
    std::string name;
  };
  std::vector<Device> devices;  ///< in the order of the columns
  std::vector<AffinityColumn> affinities;
};

/// Reads the line of column names, or gives nothing when the line is none. "GPU NUMA ID" is no GPU, and the names may
/// have run together.
std::optional<MatrixHeader> parse_matrix_header(std::string_view line);

/// The values of the affinity columns as text, empty where there is none, from what follows the cells of a row.
Result<std::vector<std::string_view>> split_affinities(std::string_view rest, std::size_t columns);

}  // namespace mortise::topology
