#include "traces/csv.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace mortise::traces {

namespace {

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

/// A field of the input as it may appear in a one-line message.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out(text.substr(0, kLongest));
  std::replace_if(out.begin(), out.end(), is_control, '?');
  return "'" + out + (text.size() > kLongest ? "...'" : "'");
}

std::string joined(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) out.append(out.empty() ? "" : ",").append(name);
  return out;
}

}  // namespace

CsvReader::CsvReader(std::istream& in, std::string file_name) : in_(in), file_name_(std::move(file_name)) {}

Error CsvReader::error(std::string_view message) const {
  return Error{file_name_ + ":" + std::to_string(line_) + ": " + std::string(message)};
}

Result<bool> CsvReader::next_line() {
  do {
    if (!std::getline(in_, text_)) {
      if (in_.bad()) return error("cannot read on: the file ended in a read error");
      return false;
    }
    if (++line_ == 1 && text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
    if (text_.ends_with('\r')) text_.pop_back();
  } while (text_.empty());
  if (std::any_of(text_.begin(), text_.end(), is_control)) {
    return error("the line has a control character; allowed: plain text");
  }
  return true;
}

/// Unescapes the field whose opening quote is at `start`; returns where its closing quote is.
Result<std::size_t> CsvReader::quoted_field(std::size_t start) {
  std::size_t to = start + 1;
  for (std::size_t from = to; from < text_.size(); ++from) {
    if (text_[from] == '"') {
      const bool doubled = from + 1 < text_.size() && text_[from + 1] == '"';
      if (!doubled) {
        fields_.push_back(std::string_view(text_).substr(start + 1, to - start - 1));
        return from;
      }
      ++from;
    }
    text_[to++] = text_[from];
  }
  return error("a quote is not closed on its line; allowed: \"text\", with a quote inside written twice");
}

Status CsvReader::split_line() {
  fields_.clear();
  for (std::size_t start = 0;;) {
    std::size_t comma = std::string::npos;
    if (start < text_.size() && text_[start] == '"') {
      const auto closing = quoted_field(start);
      if (!closing) return closing.error();
      comma = *closing + 1;
      if (comma < text_.size() && text_[comma] != ',') return error("text after a closing quote; allowed: a comma");
      if (comma == text_.size()) return ok_status();
    } else {
      comma = std::min(text_.find(',', start), text_.size());
      const std::string_view field = std::string_view(text_).substr(start, comma - start);
      if (field.find('"') != std::string_view::npos) {
        return error("a quote inside " + shown(field) + "; allowed: quotes around a whole field");
      }
      fields_.push_back(field);
      if (comma == text_.size()) return ok_status();
    }
    start = comma + 1;
  }
}

Status CsvReader::read_header(std::span<const std::string_view> columns, std::size_t required, std::size_t single) {
  const auto found = next_line();
  if (!found) return found.error();
  if (!*found)
    return Error{file_name_ + ": the file is empty; allowed: a header line " + joined(columns) + " and rows"};
  if (const Status split = split_line(); !split) return split;
  return bind(columns, required, single);
}

Status CsvReader::bind(std::span<const std::string_view> columns, std::size_t required, std::size_t single) {
  names_.assign(columns.begin(), columns.end());
  position_.assign(columns.size(), kAbsent);
  width_ = fields_.size();
  has_optional_ = false;
  for (std::size_t i = 0; i < width_; ++i) {
    const auto found = std::find(columns.begin(), columns.end(), fields_[i]);
    const auto column = static_cast<std::size_t>(found - columns.begin());
    if (found == columns.end()) {
      return error("unknown column " + shown(fields_[i]) + "; allowed: " + joined(columns));
    }
    if (position_[column] != kAbsent) return error("column " + shown(fields_[i]) + " is there twice; allowed: once");
    position_[column] = i;
    has_optional_ = has_optional_ || (column >= required && column < single);
  }
  const std::size_t needed = has_optional_ ? single : required;
  for (std::size_t column = 0; column < needed; ++column) {
    if (position_[column] != kAbsent) continue;
    const std::string shorter = required < single ? joined(columns.first(required)) + " or " : "";
    return error("the column " + names_[column] + " is missing; allowed: " + shorter + joined(columns.first(single)));
  }
  return ok_status();
}

Result<bool> CsvReader::next() {
  const auto found = next_line();
  if (!found || !*found) return found;
  if (const Status split = split_line(); !split) return split.error();
  if (fields_.size() != width_) {
    return error("the row has " + std::to_string(fields_.size()) + " fields; allowed: " + std::to_string(width_) +
                 ", as many as the header");
  }
  return true;
}

bool CsvReader::has(std::size_t column) const {
  return position_[column] != kAbsent;
}

std::string_view CsvReader::text(std::size_t column) const {
  return position_[column] == kAbsent ? std::string_view{} : fields_[position_[column]];
}

Result<std::int64_t> CsvReader::number(std::size_t column, std::int64_t minimum, std::int64_t maximum) const {
  const std::string_view field = text(column);
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failure != std::errc{} || end != field.data() + field.size() || value < minimum || value > maximum) {
    return error(names_[column] + " is " + shown(field) + "; allowed: a whole number from " + std::to_string(minimum) +
                 " to " + std::to_string(maximum));
  }
  return value;
}

Result<std::string> CsvReader::name(std::size_t column) const {
  const std::string_view field = text(column);
  if (field.empty() || field.find_first_of(" \t,\"") != std::string_view::npos) {
    return error(names_[column] + " is " + shown(field) + "; allowed: a name without blanks, commas and quotes");
  }
  return std::string(field);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? "\"\"" : std::string(1, c));
  return out + "\"";
}

}  // namespace mortise::traces
