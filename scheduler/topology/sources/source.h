#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/topology/machine.h"

namespace mortise::topology {

/// What a source told.
struct Reading {
  Machine machine;
  std::string node;                ///< name of the node, where the source has one
  std::vector<std::string> notes;  ///< what was odd or left out, one line each
};

/// A text that describes one machine. A new one is one file, one row and one test.
struct Source {
  std::string_view name;
  std::string_view description;
  /// Whether a text looks like one of these; the rows are asked in order.
  bool (*recognises)(std::string_view text);
  /// `file` stands at the start of messages, followed by the line where there is one.
  Result<Reading> (*read)(std::string_view text, std::string_view file);
};

std::span<const Source> source_table();

/// Reads a text with the first source that recognises it.
Result<Reading> read_any_source(std::string_view text, std::string_view file);

}  // namespace mortise::topology
