#include "scheduler/extender/admin_token.h"

#include <openssl/crypto.h>

#include <cstddef>
#include <fstream>
#include <iterator>

namespace mortise::extender {
namespace {

constexpr std::size_t kLeastBytes = 16;
constexpr std::size_t kMostBytes = 4096;
constexpr std::string_view kScheme = "Bearer ";

}  // namespace

Result<std::string> AdminToken::read() const {
  std::ifstream file(path_, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) return Error{path_ + ": cannot be read"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  if (text.size() < kLeastBytes || text.size() > kMostBytes || text.find_first_of(" \t\r\n") != std::string::npos) {
    return Error{path_ + ": allowed is one token of 16 to 4096 characters without spaces"};
  }
  return text;
}

Status AdminToken::check() const {
  const Result<std::string> token = read();
  return token.ok() ? ok_status() : Status(token.error());
}

bool AdminToken::admits(std::string_view authorization) const {
  const Result<std::string> token = read();
  if (!token.ok() || !authorization.starts_with(kScheme)) return false;
  const std::string_view given = authorization.substr(kScheme.size());
  // In a time that tells nothing about how much of it is right.
  return given.size() == token->size() && CRYPTO_memcmp(given.data(), token->data(), given.size()) == 0;
}

}  // namespace mortise::extender
