#include "scheduler/topology/sources/topo_matrix_cells.h"

#include <array>
#include <charconv>

#include "scheduler/base/quote.h"
#include "scheduler/topology/sources/text_lines.h"

namespace mortise::topology {
namespace {

struct ColumnName {
  std::string_view text;  ///< without blanks
  AffinityColumn column;
};
constexpr std::array kAffinityNames = {
    ColumnName{"CPUAffinity", AffinityColumn::kCpu},
    ColumnName{"NUMAAffinity", AffinityColumn::kNuma},
    ColumnName{"GPUNUMAID", AffinityColumn::kGpuNuma},
};

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

std::size_t digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count;
}

// The length of `name` at the start of `text`, with any blanks inside it; 0 when it is not there.
std::size_t match_spaced(std::string_view text, std::string_view name) {
  std::size_t at = 0;
  for (const char c : name) {
    while (at > 0 && at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    if (at >= text.size() || text[at] != c) return 0;
    ++at;
  }
  return at;
}

std::optional<AffinityColumn> take_affinity_name(std::string_view& text) {
  for (const ColumnName& row : kAffinityNames) {
    const std::size_t length = match_spaced(text, row.text);
    if (length == 0) continue;
    text.remove_prefix(length);
    return row.column;
  }
  return std::nullopt;
}

// The length of a device name of a known form: GPU3, NIC3, mlx5_3, mlx5_bond_0.
std::size_t known_device(std::string_view text) {
  for (const std::string_view stem : {"GPU", "NIC"}) {
    const std::size_t count = text.starts_with(stem) ? digits(text.substr(stem.size())) : 0;
    if (count > 0) return stem.size() + count;
  }
  if (!text.starts_with("mlx")) return 0;
  std::size_t at = 3 + digits(text.substr(3));
  if (text.substr(at).starts_with("_bond")) at += 5;
  if (at >= text.size() || text[at] != '_') return 0;
  const std::size_t count = digits(text.substr(at + 1));
  return count > 0 ? at + 1 + count : 0;
}

bool starts_column(std::string_view text) {
  std::string_view copy = text;
  return known_device(text) > 0 || take_affinity_name(copy).has_value();
}

// A device name at the front: up to a blank, or up to the next column where names have run together.
std::string_view take_device_name(std::string_view& text) {
  const std::size_t word = std::min(text.find_first_of(" \t"), text.size());
  const std::size_t known = known_device(text);
  const bool glued = known > 0 && known < word && starts_column(text.substr(known));
  const std::string_view name = text.substr(0, glued ? known : word);
  text.remove_prefix(name.size());
  return name;
}

std::optional<int> gpu_index(std::string_view name) {
  if (!name.starts_with("GPU") || name.size() == 3 || digits(name.substr(3)) != name.size() - 3) return std::nullopt;
  int index = 0;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), index);
  if (error != std::errc()) return std::nullopt;
  return index;
}

}  // namespace

std::string to_text(const Cell& cell) {
  if (cell.self) return "X";
  if (cell.nvlinks > 0) return "NV" + std::to_string(cell.nvlinks);
  return std::string(to_text(cell.pcie));
}

const Cell& worse(const Cell& a, const Cell& b) {
  if (a.nvlinks != b.nvlinks) return a.nvlinks < b.nvlinks ? a : b;
  return a.pcie > b.pcie ? a : b;
}

std::optional<Cell> take_cell(std::string_view& text) {
  skip_blanks(text);
  Cell cell;
  if (text.starts_with("X")) {
    text.remove_prefix(1);
    cell.self = true;
    return cell;
  }
  if (text.starts_with("NV")) {
    const std::size_t count = digits(text.substr(2));
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 2 + count, cell.nvlinks);
    if (count == 0 || error != std::errc() || cell.nvlinks < 1 || cell.nvlinks > kMaxNvLinks) return std::nullopt;
    text.remove_prefix(2 + count);
    return cell;
  }
  for (const std::size_t length : {std::size_t{3}, std::size_t{4}}) {
    const auto link = parse_link_class(text.substr(0, length));
    if (!link) continue;
    cell.pcie = *link;
    text.remove_prefix(length);
    return cell;
  }
  return std::nullopt;
}

std::optional<MatrixHeader> parse_matrix_header(std::string_view line) {
  std::string_view rest = line;
  skip_blanks(rest);
  MatrixHeader header;
  while (!rest.empty()) {
    if (const auto affinity = take_affinity_name(rest)) {
      header.affinities.push_back(*affinity);
    } else {
      if (!header.affinities.empty()) return std::nullopt;
      const std::string_view name = take_device_name(rest);
      std::string_view as_cell = name;
      // A row of the matrix starts like a header, but goes on with cells.
      if (take_cell(as_cell) && as_cell.empty()) return std::nullopt;
      header.devices.push_back({gpu_index(name), std::string(name)});
      if (!header.devices.front().gpu) return std::nullopt;
    }
    skip_blanks(rest);
  }
  if (header.devices.empty()) return std::nullopt;
  // Without affinity columns, two GPUs tell a header from prose.
  if (header.affinities.empty() && (header.devices.size() < 2 || !header.devices[1].gpu)) return std::nullopt;
  return header;
}

Result<std::vector<std::string_view>> split_affinities(std::string_view rest, std::size_t columns) {
  std::vector<std::string_view> values;
  if (rest.find('\t') == std::string_view::npos) {
    values = words(rest);
    if (!values.empty() && values.size() < columns) {
      return Error{"has " + std::to_string(values.size()) + " of " + std::to_string(columns) +
                   " affinity values and no tabs that say which; allowed: all of them, or text with its tabs"};
    }
  } else {
    // The value of "GPU NUMA ID" stands behind an empty field of its own.
    while (rest.front() != '\t') {
      if (rest.front() != ' ') return Error{"has " + quote(trim(rest)) + " after its cells"};
      rest.remove_prefix(1);
    }
    for (const std::string_view field : split(rest.substr(1), '\t')) values.push_back(trim(field));
    if (values.size() > columns && columns == 3 && values[2].empty()) values.erase(values.begin() + 2);
    while (values.size() > columns && values.back().empty()) values.pop_back();
  }
  if (values.size() > columns) {
    return Error{"has " + std::to_string(values.size()) + " affinity values; the header names " +
                 std::to_string(columns)};
  }
  values.resize(columns);
  return values;
}

}  // namespace mortise::topology
