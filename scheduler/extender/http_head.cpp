#include "scheduler/extender/http_head.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "scheduler/base/quote.h"
#include "scheduler/extender/connection.h"

namespace mortise::extender {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{8} << 10;
constexpr std::size_t kMaxTrailerBytes = std::size_t{64} << 10;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

/// A character of a header's name (RFC 9110, section 5.6.2).
bool is_token_char(char c) {
  const bool letter_or_digit = (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
  return letter_or_digit || (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Takes the next line off `rest`, without its end; empty when it does not end with CR LF or has control characters.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos || end == 0 || rest[end - 1] != '\r') return std::nullopt;
  const std::string_view line = rest.substr(0, end - 1);
  rest.remove_prefix(end + 1);
  const bool clean = std::none_of(line.begin(), line.end(), [](char c) { return c == '\r' || c == '\0'; });
  return clean ? std::optional(line) : std::nullopt;
}

std::optional<std::uint64_t> whole_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The fields of a head that say where the body ends.
struct BodyFields {
  std::optional<std::string_view> length;
  std::optional<std::string_view> coding;
};

Status take_field(std::string_view line, BodyFields& fields) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || name.empty() || !std::all_of(name.begin(), name.end(), is_token_char)) {
    return Error{"malformed header line " + quote(line)};
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  const bool is_length = equal_ignoring_case(name, "Content-Length");
  if (!is_length && !equal_ignoring_case(name, "Transfer-Encoding")) return ok_status();
  auto& field = is_length ? fields.length : fields.coding;
  if (field) return Error{std::string(name) + " is given twice"};
  field = value;
  return ok_status();
}

std::size_t min_of(std::size_t a, std::uint64_t b) {
  return b < a ? static_cast<std::size_t>(b) : a;
}

/// Reads `count` bytes; keeps those up to the limit. False when they do not all come.
bool read_bytes(Connection& connection, std::uint64_t count, std::size_t limit, std::string& body, bool& too_large) {
  while (count > 0) {
    const std::string_view there = connection.peek();
    if (there.empty()) return false;
    const std::string_view part = there.substr(0, min_of(there.size(), count));
    too_large = too_large || part.size() > limit - body.size();
    if (!too_large) body.append(part);
    connection.consume(part.size());
    count -= part.size();
  }
  return true;
}

/// The size of the next chunk from its line, `1a;extension`.
std::optional<std::uint64_t> chunk_size(std::string_view line) {
  const auto text = take_line(line);
  if (!text) return std::nullopt;
  return whole_number(trimmed(text->substr(0, text->find(';'))), 16);
}

/// Up to the empty line that ends the request.
bool skip_trailers(Connection& connection) {
  std::string line;
  for (std::size_t left = kMaxTrailerBytes; connection.read_line(line, std::min(left, kMaxLineBytes));) {
    if (line == "\r\n") return true;
    std::string_view rest = line;
    const auto text = take_line(rest);
    BodyFields ignored;
    if (!text || !take_field(*text, ignored).ok()) return false;
    left -= line.size();
  }
  return false;
}

}  // namespace

Result<Framing> read_framing(std::string_view head) {
  const auto request_line = take_line(head);
  if (!request_line) return Error{"malformed request line"};
  BodyFields fields;
  for (;;) {
    const auto line = take_line(head);
    if (!line) return Error{"malformed header: each line ends with CR LF and has no control characters"};
    if (line->empty()) break;
    if (const Status status = take_field(*line, fields); !status.ok()) return status.error();
  }
  Framing framing;
  if (fields.coding) {
    if (fields.length) return Error{"both Content-Length and Transfer-Encoding are given"};
    if (!equal_ignoring_case(*fields.coding, "chunked") || !request_line->ends_with("HTTP/1.1")) {
      return Error{"Transfer-Encoding " + quote(*fields.coding) + " is not served; allowed: chunked, with HTTP/1.1"};
    }
    framing.chunked = true;
  } else if (fields.length) {
    const auto length = whole_number(*fields.length, 10);
    if (!length) return Error{"Content-Length " + quote(*fields.length) + " is no whole number of bytes"};
    framing.length = *length;
  }
  return framing;
}

BodyEnd read_body(Connection& connection, const Framing& framing, std::size_t limit, std::string& body) {
  bool too_large = false;
  if (!framing.chunked) {
    if (!read_bytes(connection, framing.length, limit, body, too_large)) return BodyEnd::kBroken;
    return too_large ? BodyEnd::kTooLarge : BodyEnd::kWhole;
  }
  std::string line;
  for (;;) {
    if (!connection.read_line(line, kMaxLineBytes)) return BodyEnd::kBroken;
    const auto size = chunk_size(line);
    if (!size) return BodyEnd::kBroken;
    if (*size == 0) break;
    if (!read_bytes(connection, *size, limit, body, too_large)) return BodyEnd::kBroken;
    if (!connection.read_line(line, 2) || line != "\r\n") return BodyEnd::kBroken;
  }
  if (!skip_trailers(connection)) return BodyEnd::kBroken;
  return too_large ? BodyEnd::kTooLarge : BodyEnd::kWhole;
}

}  // namespace mortise::extender
