#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "scheduler/extender/wire.h"

namespace mortise::extender {
namespace {

namespace od = simdjson::ondemand;

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

/// Go folds case when it looks a key up; ours are ASCII.
bool same_key(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
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

/// Walks one document and checks the syntax of all it passes: simdjson's on-demand front end looks only at what is
/// asked for, but parts of the request are sent back as they came. Every function returns false after problem() is set.
class Reader {
 public:
  Reader(od::document& document, std::string_view text) : document_(document), text_(text), at_(text.data()) {}

  const std::string& problem() const { return problem_; }

  bool extender_args(ExtenderArgs& out);
  bool binding_args(BindingArgs& out);

 private:
  bool fail(std::string_view what) {
    if (problem_.empty()) {
      problem_ = std::string(what) + " (near byte " + std::to_string(at_ - text_.data()) + ")";
    }
    return false;
  }
  bool fail_syntax() { return fail("request is not valid JSON"); }

  /// The text of a scalar, or the bracket that opens a container. Does not move on; empty beyond the end.
  std::string_view token(od::value& value) {
    const std::string_view raw = value.raw_json_token();
    const auto rest = text_.data() + text_.size() - raw.data();
    if (rest <= 0) return {};
    const std::string_view text = trim_end(raw.substr(0, static_cast<std::size_t>(rest)));
    if (!text.empty()) at_ = text.data();
    return text;
  }

  /// Moves past a string whose text has no escapes. A string that is left where it is and followed by a colon would be
  /// taken for a key, and what is skipped for its value.
  bool pass_string(od::value& value) {
    return value.get_raw_json_string().error() == simdjson::SUCCESS || fail_syntax();
  }

  template <class F>
  bool each_field(od::object& object, F&& f);
  template <class F>
  bool each_field(od::value& value, F&& f);
  template <class F>
  bool each_element(od::value& value, F&& f);

  bool check(od::value& value, int depth);
  bool check_object(od::value& value, int depth);
  bool check_key(od::field& field);
  /// The text of a value that was checked; it ends where the next token begins.
  bool check_and_slice(od::value& value, std::string_view& out);
  bool string_or_null(od::value& value, std::string_view name, std::string_view& out);
  bool copy_string(od::value& value, std::string_view name, std::string& out);

  bool pod(od::value& value, std::string_view& out);
  bool node_names(od::value& value);
  bool nodes(od::value& value);
  bool node_items(od::value& value);
  bool node_item(od::value& value);

  od::document& document_;
  std::string_view text_;
  const char* at_;
  std::string problem_;
  // One list per field, so that a repeated key can replace what the first one gave.
  std::optional<std::vector<AskedNode>> names_;
  std::optional<std::vector<AskedNode>> items_;
  std::deque<std::string> unescaped_;
};

template <class F>
bool Reader::each_field(od::object& object, F&& f) {
  for (auto field : object) {
    std::string_view key;
    if (field.error() != simdjson::SUCCESS || field.unescaped_key().get(key) != simdjson::SUCCESS) {
      return fail_syntax();
    }
    od::value value = field.value().value_unsafe();
    if (!f(key, value)) return false;
  }
  return true;
}

template <class F>
bool Reader::each_field(od::value& value, F&& f) {
  od::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return fail_syntax();
  return each_field(object, std::forward<F>(f));
}

template <class F>
bool Reader::each_element(od::value& value, F&& f) {
  od::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return fail_syntax();
  for (auto element : array) {
    if (element.error() != simdjson::SUCCESS) return fail_syntax();
    od::value item = element.value_unsafe();
    if (!f(item)) return false;
  }
  return true;
}

bool Reader::check_key(od::field& field) {
  const char* begin = field.key().raw();
  const auto* end =
      static_cast<const char*>(std::memchr(begin, '"', static_cast<std::size_t>(text_.data() + text_.size() - begin)));
  if (end == nullptr) return fail_syntax();
  // The parser's first pass has refused raw control characters and bad UTF-8; only escapes are left to check.
  if (!has_escape({begin, end})) return true;
  return field.unescaped_key().error() == simdjson::SUCCESS || fail_syntax();
}

bool Reader::check_object(od::value& value, int depth) {
  od::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return fail_syntax();
  for (auto entry : object) {
    if (entry.error() != simdjson::SUCCESS) return fail_syntax();
    od::field field = entry.value_unsafe();
    if (!check_key(field) || !check(field.value(), depth + 1)) return false;
  }
  return true;
}

bool Reader::check(od::value& value, int depth) {
  if (depth > kMaxDepth) return fail("request is nested too deeply");
  const std::string_view text = token(value);
  if (text.empty()) return fail_syntax();
  switch (text.front()) {
    case '{':
      return check_object(value, depth);
    case '[':
      return each_element(value, [&](od::value& item) { return check(item, depth + 1); });
    case '"':
      if (!has_escape(text)) return pass_string(value);
      return value.get_string().error() == simdjson::SUCCESS || fail_syntax();
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

bool Reader::check_and_slice(od::value& value, std::string_view& out) {
  const char* begin = token(value).data();
  if (!check(value, 1)) return false;
  const char* end = nullptr;
  if (document_.current_location().get(end) != simdjson::SUCCESS) return fail_syntax();
  out = trim_end({begin, end});
  return true;
}

/// Null leaves `out` as it is, as in Go.
bool Reader::string_or_null(od::value& value, std::string_view name, std::string_view& out) {
  const std::string_view text = token(value);
  if (text == "null") return true;
  if (!text.starts_with('"')) return fail(std::string(name) + " must be a string");
  if (!has_escape(text)) {
    out = text.substr(1, text.size() - 2);
    return pass_string(value);
  }
  std::string_view unescaped;
  if (value.get_string().get(unescaped) != simdjson::SUCCESS) return fail_syntax();
  out = unescaped_.emplace_back(unescaped);
  return true;
}

bool Reader::copy_string(od::value& value, std::string_view name, std::string& out) {
  std::string_view text = out;
  if (!string_or_null(value, name, text)) return false;
  if (text.data() != out.data()) out = text;
  return true;
}

bool Reader::pod(od::value& value, std::string_view& out) {
  const std::string_view text = token(value);
  if (text == "null") {
    out = {};
    return true;
  }
  if (!text.starts_with('{')) return fail("Pod must be an object");
  return check_and_slice(value, out);
}

bool Reader::node_names(od::value& value) {
  const std::string_view text = token(value);
  names_.reset();
  if (text == "null") return true;
  if (!text.starts_with('[')) return fail("NodeNames must be an array of strings");
  names_.emplace();
  return each_element(value, [&](od::value& item) {
    return string_or_null(item, "each entry of NodeNames", names_->emplace_back().name);
  });
}

bool Reader::nodes(od::value& value) {
  const std::string_view text = token(value);
  items_.reset();
  if (text == "null") return true;
  if (!text.starts_with('{')) return fail("Nodes must be an object with items");
  items_.emplace();
  return each_field(value, [&](std::string_view key, od::value& field) {
    return same_key(key, "items") ? node_items(field) : check(field, 1);
  });
}

bool Reader::node_items(od::value& value) {
  const std::string_view text = token(value);
  items_->clear();
  if (text == "null") return true;
  if (!text.starts_with('[')) return fail("Nodes.items must be an array of Node objects");
  return each_element(value, [&](od::value& item) { return node_item(item); });
}

bool Reader::node_item(od::value& value) {
  const std::string_view text = token(value);
  AskedNode& node = items_->emplace_back();
  if (text == "null") return true;
  if (!text.starts_with('{')) return fail("each of Nodes.items must be a Node object");
  const char* begin = text.data();
  const bool read = each_field(value, [&](std::string_view key, od::value& field) {
    const std::string_view field_text = token(field);
    if (!same_key(key, "metadata") || field_text == "null") return check(field, 1);
    if (!field_text.starts_with('{')) return fail("metadata of a Node must be an object");
    return each_field(field, [&](std::string_view meta_key, od::value& meta) {
      return same_key(meta_key, "name") ? string_or_null(meta, "the name of a Node", node.name) : check(meta, 2);
    });
  });
  const char* end = nullptr;
  if (!read) return false;
  if (document_.current_location().get(end) != simdjson::SUCCESS) return fail_syntax();
  node.object = trim_end({begin, end});
  return true;
}

bool Reader::extender_args(ExtenderArgs& out) {
  od::object root;
  if (document_.get_object().get(root) != simdjson::SUCCESS) return fail_syntax();
  const bool read = each_field(root, [&](std::string_view key, od::value& value) {
    if (same_key(key, "Pod")) return pod(value, out.pod);
    if (same_key(key, "NodeNames")) return node_names(value);
    if (same_key(key, "Nodes")) return nodes(value);
    return check(value, 1);
  });
  if (!read) return false;
  out.has_names = names_.has_value();
  out.has_nodes = items_.has_value();
  if (names_) out.nodes = std::move(*names_);
  if (items_ && out.nodes.empty()) {
    out.nodes = std::move(*items_);
  } else if (items_) {
    out.nodes.insert(out.nodes.end(), items_->begin(), items_->end());
  }
  out.unescaped = std::move(unescaped_);
  return true;
}

bool Reader::binding_args(BindingArgs& out) {
  od::object root;
  if (document_.get_object().get(root) != simdjson::SUCCESS) return fail_syntax();
  return each_field(root, [&](std::string_view key, od::value& value) {
    if (same_key(key, "PodName")) return copy_string(value, "PodName", out.pod_name);
    if (same_key(key, "PodNamespace")) return copy_string(value, "PodNamespace", out.pod_namespace);
    if (same_key(key, "PodUID")) return copy_string(value, "PodUID", out.pod_uid);
    if (same_key(key, "Node")) return copy_string(value, "Node", out.node);
    return check(value, 1);
  });
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

/// `text` must be followed by kBodyPadding readable bytes.
template <class T>
Result<T> read_object(od::parser& parser, std::string_view text, bool (Reader::*read)(T&)) {
  od::document document;
  const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + kBodyPadding);
  if (const auto error = parser.iterate(padded).get(document); error != simdjson::SUCCESS) {
    return Error{std::string("request is not valid JSON: ") + simdjson::error_message(error)};
  }
  Reader reader(document, text);
  T out;
  if (!(reader.*read)(out)) return Error{reader.problem()};
  return out;
}

template <class T>
Result<T> read_body(std::string& body, bool (Reader::*read)(T&)) {
  const std::size_t size = body.size();
  body.append(kBodyPadding, ' ');
  std::string_view text = trim_end(std::string_view(body).substr(0, size));
  const auto* first = std::find_if_not(text.begin(), text.end(), is_space);
  text.remove_prefix(static_cast<std::size_t>(first - text.begin()));
  if (text.empty()) return Error{"request has no body"};
  // Go decodes a bare null into an object with nothing set.
  if (text.starts_with("null") && (text.size() == 4 || is_space(text[4]))) return T{};
  if (text.front() != '{') return Error{"request must be a JSON object"};

  thread_local od::parser kept_parser;
  std::optional<od::parser> large_parser;
  od::parser& parser = text.size() <= kKeptParserBytes ? kept_parser : large_parser.emplace();
  Result<T> result = read_object(parser, text, read);
  if (result.ok()) return result;
  // Only the first value counts: what follows it may be what was wrong.
  const std::size_t length = first_value_length(text);
  if (length == text.size()) return result;
  return read_object(parser, text.substr(0, length), read);
}

}  // namespace

Result<ExtenderArgs> read_extender_args(std::string& body) {
  return read_body(body, &Reader::extender_args);
}

Result<BindingArgs> read_binding_args(std::string& body) {
  return read_body(body, &Reader::binding_args);
}

}  // namespace mortise::extender
