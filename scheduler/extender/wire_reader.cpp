#include "scheduler/extender/wire_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>

#include "scheduler/extender/wire.h"

namespace mortise::extender {

namespace od = simdjson::ondemand;

class JsonReader::Value {
 public:
  explicit Value(od::value on_demand) : value(on_demand) {}

  od::value value;
};

struct JsonReader::Document {
  od::document document;
};

namespace {

static_assert(kBodyPadding >= simdjson::SIMDJSON_PADDING);

/// Deeper nesting than any Kubernetes object has; bounds the recursion.
constexpr int kMaxDepth = 512;
/// A parser that has grown beyond this is not kept for the next request.
constexpr std::size_t kKeptParserBytes = std::size_t{1} << 20;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool has_escape(std::string_view text) {
  return std::memchr(text.data(), '\\', text.size()) != nullptr;
}

std::size_t count_digits(std::string_view text) {
  const auto* end = std::find_if_not(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return static_cast<std::size_t>(end - text.begin());
}

/// The number grammar of RFC 8259. The amount does not matter: nothing we use is a number.
bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t whole = count_digits(text);
  if (whole == 0 || (whole > 1 && text[0] == '0')) return false;
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::size_t digits = count_digits(text);
    if (digits == 0) return false;
    text.remove_prefix(digits);
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    const std::size_t digits = count_digits(text);
    if (digits == 0) return false;
    text.remove_prefix(digits);
  }
  return text.empty();
}

/// Length of the first JSON value, found by brackets and quotes alone; the whole text when it does not end.
std::size_t first_value_length(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return i + 1;
  }
  return text.size();
}

}  // namespace

bool same_key(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

bool JsonReader::fail(std::string_view what) {
  if (problem_.empty()) {
    problem_ = std::string(what) + " (near byte " + std::to_string(at_ - text_.data()) + ")";
  }
  return false;
}

std::string_view JsonReader::token(Value& value) {
  const std::string_view raw = value.value.raw_json_token();
  const auto rest = text_.data() + text_.size() - raw.data();
  if (rest <= 0) return {};
  const std::string_view text = trim_end(raw.substr(0, static_cast<std::size_t>(rest)));
  if (!text.empty()) at_ = text.data();
  return text;
}

/// Moves past a string whose text has no escapes. A string that is left where it is and followed by a colon would be
/// taken for a key, and what is skipped for its value.
bool JsonReader::pass_string(Value& value) {
  return value.value.get_raw_json_string().error() == simdjson::SUCCESS || fail_syntax();
}

template <class Object>
bool JsonReader::each_field_of(Object& object, OnField on_field) {
  for (auto field : object) {
    std::string_view key;
    if (field.error() != simdjson::SUCCESS || field.unescaped_key().get(key) != simdjson::SUCCESS) {
      return fail_syntax();
    }
    Value value(field.value().value_unsafe());
    if (!on_field(key, value)) return false;
  }
  return true;
}

bool JsonReader::each_field(OnField on_field) {
  od::object object;
  if (document_.document.get_object().get(object) != simdjson::SUCCESS) return fail_syntax();
  return each_field_of(object, on_field);
}

bool JsonReader::each_field(Value& value, OnField on_field) {
  od::object object;
  if (value.value.get_object().get(object) != simdjson::SUCCESS) return fail_syntax();
  return each_field_of(object, on_field);
}

bool JsonReader::each_element(Value& value, OnElement on_element) {
  od::array array;
  if (value.value.get_array().get(array) != simdjson::SUCCESS) return fail_syntax();
  for (auto element : array) {
    if (element.error() != simdjson::SUCCESS) return fail_syntax();
    Value item(element.value_unsafe());
    if (!on_element(item)) return false;
  }
  return true;
}

template <class Field>
bool JsonReader::check_key(Field& field) {
  const char* begin = field.key().raw();
  const auto* end =
      static_cast<const char*>(std::memchr(begin, '"', static_cast<std::size_t>(text_.data() + text_.size() - begin)));
  if (end == nullptr) return fail_syntax();
  // The parser's first pass has refused raw control characters and bad UTF-8; only escapes are left to check.
  if (!has_escape({begin, end})) return true;
  return field.unescaped_key().error() == simdjson::SUCCESS || fail_syntax();
}

bool JsonReader::check_object(Value& value, int depth) {
  od::object object;
  if (value.value.get_object().get(object) != simdjson::SUCCESS) return fail_syntax();
  for (auto entry : object) {
    if (entry.error() != simdjson::SUCCESS) return fail_syntax();
    od::field field = entry.value_unsafe();
    if (!check_key(field)) return false;
    Value inner(field.value());
    if (!check(inner, depth + 1)) return false;
  }
  return true;
}

bool JsonReader::check(Value& value, int depth) {
  if (depth > kMaxDepth) return fail("request is nested too deeply");
  const std::string_view text = token(value);
  if (text.empty()) return fail_syntax();
  switch (text.front()) {
    case '{':
      return check_object(value, depth);
    case '[':
      return each_element(value, [&](Value& item) { return check(item, depth + 1); });
    case '"':
      if (!has_escape(text)) return pass_string(value);
      return value.value.get_string().error() == simdjson::SUCCESS || fail_syntax();
    case 't':
      return text == "true" || fail_syntax();
    case 'f':
      return text == "false" || fail_syntax();
    case 'n':
      return text == "null" || fail_syntax();
    default:
      return is_number(text) || fail_syntax();
  }
}

bool JsonReader::pass(Value& value) {
  return check(value, 1);
}

bool JsonReader::slice(Value& value, std::string_view& out) {
  const char* begin = token(value).data();
  return check(value, 1) && slice_from(begin, out);
}

bool JsonReader::slice_from(const char* begin, std::string_view& out) {
  const char* end = nullptr;
  if (document_.document.current_location().get(end) != simdjson::SUCCESS) return fail_syntax();
  out = trim_end({begin, end});
  return true;
}

bool JsonReader::string_or_null(Value& value, std::string_view name, std::string_view& out) {
  const std::string_view text = token(value);
  if (text == "null") return true;
  if (!text.starts_with('"')) return fail(std::string(name) + " must be a string");
  if (!has_escape(text)) {
    out = text.substr(1, text.size() - 2);
    return pass_string(value);
  }
  std::string_view unescaped;
  if (value.value.get_string().get(unescaped) != simdjson::SUCCESS) return fail_syntax();
  out = keep(unescaped);
  return true;
}

bool JsonReader::copy_string(Value& value, std::string_view name, std::string& out) {
  std::string_view text = out;
  if (!string_or_null(value, name, text)) return false;
  if (text.data() != out.data()) out = text;
  return true;
}

bool JsonReader::object_or_null(Value& value, std::string_view name, std::string_view& out) {
  const std::string_view text = token(value);
  if (text == "null") {
    out = {};
    return true;
  }
  if (!text.starts_with('{')) return fail(std::string(name) + " must be an object");
  return slice(value, out);
}

bool JsonReader::integer_or_null(Value& value, std::string_view name, std::int64_t& out) {
  const std::string_view text = token(value);
  if (text == "null") return true;
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!is_number(text) || status != std::errc{} || end != text.data() + text.size()) {
    return fail(std::string(name) + " must be a whole number");
  }
  out = number;
  return true;
}

namespace {

/// `text` must be followed by kBodyPadding readable bytes.
Status read_object(od::parser& parser, std::string_view text, FunctionRef<bool(JsonReader&)> read) {
  JsonReader::Document document;
  const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + kBodyPadding);
  if (const auto error = parser.iterate(padded).get(document.document); error != simdjson::SUCCESS) {
    return Error{std::string("request is not valid JSON: ") + simdjson::error_message(error)};
  }
  JsonReader reader(document, text);
  if (!read(reader)) return Error{reader.problem()};
  return ok_status();
}

}  // namespace

Status read_document(std::string& body, FunctionRef<bool(JsonReader&)> read) {
  const std::size_t size = body.size();
  body.append(kBodyPadding, ' ');
  std::string_view text = trim_end(std::string_view(body).substr(0, size));
  const auto* first = std::find_if_not(text.begin(), text.end(), is_space);
  text.remove_prefix(static_cast<std::size_t>(first - text.begin()));
  if (text.empty()) return Error{"request has no body"};
  // Go decodes a bare null into an object with nothing set.
  if (text.starts_with("null") && (text.size() == 4 || is_space(text[4]))) return ok_status();
  if (text.front() != '{') return Error{"request must be a JSON object"};

  thread_local od::parser kept_parser;
  std::optional<od::parser> large_parser;
  od::parser& parser = text.size() <= kKeptParserBytes ? kept_parser : large_parser.emplace();
  Status status = read_object(parser, text, read);
  if (status.ok()) return status;
  // Only the first value counts: what follows it may be what was wrong.
  const std::size_t length = first_value_length(text);
  if (length == text.size()) return status;
  return read_object(parser, text.substr(0, length), read);
}

}  // namespace mortise::extender
