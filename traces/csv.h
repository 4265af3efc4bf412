#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::traces {

/// Reads a CSV file (RFC 4180) row by row and never holds more than one. Tolerated: CRLF, a byte order mark, blank
/// lines and a missing last newline. Refused, with the line: rows of another length than the header, control
/// characters, and quoted fields that run over a line (no format here has them, and a stray quote would swallow the
/// file).
class CsvReader {
 public:
  /// `file_name` is only for messages.
  CsvReader(std::istream& in, std::string file_name);

  /// Reads the header. `columns` are all names the format has, in any order in the file: the first `required` must be
  /// there, those up to `single` all or none, each of the rest as it likes, and nothing else may be. Fields are then
  /// addressed by index in `columns`.
  Status read_header(std::span<const std::string_view> columns, std::size_t required, std::size_t single);
  Status read_header(std::span<const std::string_view> columns, std::size_t required) {
    return read_header(columns, required, columns.size());
  }
  /// Whether the columns that come all or none are there.
  bool has_optional() const { return has_optional_; }
  bool has(std::size_t column) const;

  /// Moves to the next row; false at the end of the file.
  Result<bool> next();
  /// A field of this row, valid until next(); empty if its column is absent.
  std::string_view text(std::size_t column) const;
  /// A field that must be a whole number in minimum..maximum.
  Result<std::int64_t> number(std::size_t column, std::int64_t minimum, std::int64_t maximum) const;
  /// A field that is a name: not empty, and without blanks, commas and quotes, so that outputs stay one word.
  Result<std::string> name(std::size_t column) const;

  std::size_t line() const { return line_; }
  /// "FILE:LINE: message"
  Error error(std::string_view message) const;

 private:
  Result<bool> next_line();
  Status split_line();
  Result<std::size_t> quoted_field(std::size_t start);
  Status bind(std::span<const std::string_view> columns, std::size_t required, std::size_t single);

  std::istream& in_;
  std::string file_name_;
  std::size_t line_ = 0;
  std::string text_;                      ///< the line; quoted fields are unescaped in place
  std::vector<std::string_view> fields_;  ///< of this row, pointing into text_
  std::vector<std::string> names_;        ///< of the columns the format has
  std::vector<std::size_t> position_;     ///< column -> field; kAbsent
  std::size_t width_ = 0;                 ///< fields of the header
  bool has_optional_ = false;
};

/// A field as it must be written so that it reads back the same.
std::string csv_field(std::string_view text);

}  // namespace mortise::traces
