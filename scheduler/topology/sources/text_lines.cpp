#include "scheduler/topology/sources/text_lines.h"

#include <cctype>

namespace mortise::topology {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

// The length of the escape sequence at the start of `text` (ECMA-48: ESC, then for a control sequence "[", parameters
// and one final letter).
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[1] != '[') return 1;
  std::size_t at = 2;
  while (at < text.size() && (text[at] < '@' || text[at] > '~') && text[at] != '\n') ++at;
  return at < text.size() && text[at] != '\n' ? at + 1 : at;
}

}  // namespace

std::vector<std::string> plain_lines(std::string_view text) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      at += escape_length(text.substr(at));
      continue;
    }
    if (text[at] == '\n') {
      lines.emplace_back();
    } else if (text[at] != '\r') {
      lines.back() += text[at];
    }
    ++at;
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return parts;
    text.remove_prefix(first);
    const std::size_t end = text.find_first_of(kBlanks);
    parts.push_back(text.substr(0, end));
    text.remove_prefix(parts.back().size());
  }
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

}  // namespace mortise::topology
