#pragma once

#include <istream>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "traces/workload.h"

namespace mortise::traces {

/// One known trace format. A new format is one file, one row of this table and one test.
struct TraceFormat {
  std::string_view name;
  std::string_view description;
  bool (*detect)(std::string_view first_line);
  Result<Trace> (*read)(std::istream& in, const std::string& file_name);
};

std::span<const TraceFormat> trace_formats();

/// Reads a trace in the first format that knows its first line. `file_name` is only for messages and the trace's name.
Result<Trace> read_trace(std::istream& in, const std::string& file_name);
/// The same from a file, or from a pipe (nothing is read twice).
Result<Trace> read_trace_file(const std::string& path);

}  // namespace mortise::traces
