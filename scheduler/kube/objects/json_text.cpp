#include "scheduler/kube/objects/json_text.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/base/json_depth.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

/// Reads on to the first mistake and keeps its place; builds nothing.
class MistakeFinder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const json::exception& why) override {
    position_ = position;
    number_out_of_range_ = why.id == 406;
    return false;
  }

  /// How many bytes had been read.
  std::size_t position() const { return position_; }
  bool number_out_of_range() const { return number_out_of_range_; }

 private:
  std::size_t position_ = 0;
  bool number_out_of_range_ = false;
};

/// "FILE:LINE: " or "line LINE: ".
std::string place(std::string_view text, std::size_t offset, std::string_view file) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
  return (file.empty() ? "line " + line : std::string(file) + ":" + line) + ": ";
}

Error describe_mistake(std::string_view text, std::string_view file) {
  MistakeFinder finder;
  json::sax_parse(text.begin(), text.end(), &finder);
  // The position counts the offending byte, or one past the end when the text ends too early.
  const bool at_end = finder.position() > text.size();
  const std::size_t offset = std::min(text.size(), finder.position() - (finder.position() > 0 ? 1 : 0));
  const std::size_t line_start = text.substr(0, offset).rfind('\n') + 1;  // npos + 1 is 0

  std::string message = place(text, offset, file) + "not valid JSON: ";
  if (at_end) return Error{message + "the text ends too early"};
  message += finder.number_out_of_range() ? "a number is out of range" : "unexpected text";
  return Error{message + " at column " + std::to_string(offset - line_start + 1)};
}

}  // namespace

Result<json> parse_json_text(std::string_view text, std::string_view file) {
  if (const auto deep = nested_deeper(text)) {
    return Error{place(text, *deep, file) + "nested deeper than " + std::to_string(kMaxNesting) + " levels"};
  }
  json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return describe_mistake(text, file);
  return value;
}

}  // namespace mortise::kube
