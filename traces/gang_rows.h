#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "scheduler/base/result.h"
#include "traces/csv.h"
#include "traces/workload.h"

namespace mortise::traces {

/// Columns that make gangs of a pod list's rows; a file has any of them. A row stands for `gang_size` pods that are
/// alike, NAME-0, NAME-1, ..., or for the pod NAME where that is 1. Rows with the same `gang`, which stand one after
/// another, are the roles of one gang; without `gang`, a row of several pods is a gang named as the row. A gang of one
/// pod is that pod.
inline constexpr std::string_view kGangColumns[] = {"gang", "gang_size", "role", "topology_required",
                                                    "topology_preferred"};

/// Puts the rows of a pod list into a trace one after another, gangs and their members included.
class GangRows {
 public:
  /// `first_column` is the index of the first of kGangColumns in the reader's columns.
  GangRows(Trace& trace, std::size_t first_column) : trace_(trace), first_column_(first_column) {}

  /// `pod` is what the reader's row says beside these columns.
  Status add(const CsvReader& csv, PodRecord pod);
  /// After the last row.
  void finish();

 private:
  struct Row {
    std::string gang;
    std::uint32_t size = 1;
    std::string role;
    std::string required_level;
    std::string preferred_level;
  };

  Result<Row> read_row(const CsvReader& csv, const std::string& name) const;
  Status open(const CsvReader& csv, const Row& row);
  Status join(const CsvReader& csv, const Row& row);
  Status take_name(const CsvReader& csv, const char* what, const std::string& name);

  Trace& trace_;
  std::size_t first_column_;
  bool open_ = false;  // the last of trace_.gangs may go on
  std::unordered_map<std::string, std::size_t> line_of_;
  std::size_t gang_pods_ = 0;
};

}  // namespace mortise::traces
