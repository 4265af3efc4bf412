#include "scheduler/kube/client/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <limits>

namespace mortise::kube {
namespace {

bool is_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/';
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](char c) { return c == '\n' || c == '\r'; });
  if (digits.empty()) return std::string();
  if (digits.size() % 4 != 0 || digits.size() > std::numeric_limits<int>::max()) return std::nullopt;
  // EVP_DecodeBlock passes over blanks and counts padding as zeros, so both are looked at here.
  const std::size_t padding = digits.ends_with("==") ? 2 : digits.ends_with('=') ? 1 : 0;
  const auto padding_begin = digits.end() - static_cast<std::ptrdiff_t>(padding);
  if (!std::all_of(digits.begin(), padding_begin, is_digit)) return std::nullopt;
  std::string bytes(digits.size() / 4 * 3, '\0');
  const int count =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(digits.data()), static_cast<int>(digits.size()));
  if (count < 0 || static_cast<std::size_t>(count) < padding) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(count) - padding);
  return bytes;
}

}  // namespace mortise::kube
