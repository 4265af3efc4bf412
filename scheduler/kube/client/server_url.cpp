#include <charconv>
#include <cstddef>
#include <system_error>

#include "scheduler/base/quote.h"
#include "scheduler/kube/client/api_config.h"

namespace mortise::kube {
namespace {

constexpr std::string_view kForm = "; allowed: https://HOST[:PORT][/PATH] or http://HOST[:PORT][/PATH]";

/// Printable, and nothing that means something else in a request line or a header.
bool is_plain(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c >= '\x7f' || c == '?' || c == '#' || c == '@' || c == '\\' || c == '"') return false;
  }
  return true;
}

/// Takes the host off the front of `rest`; empty when there is none.
std::string take_host(std::string_view& rest) {
  std::size_t begin = 0;
  std::size_t end = rest.find_first_of(":/");
  std::size_t next = end;
  if (rest.starts_with('[')) {
    begin = 1;
    end = rest.find(']');
    if (end == std::string_view::npos || rest.substr(0, end).find(':') == std::string_view::npos) return {};
    next = end + 1;
  }
  const std::string host(rest.substr(begin, end == std::string_view::npos ? end : end - begin));
  rest.remove_prefix(next == std::string_view::npos ? rest.size() : next);
  return host;
}

/// Takes `:PORT` off the front of `rest`, if it is there.
bool take_port(std::string_view& rest, std::uint16_t& port) {
  if (!rest.starts_with(':')) return rest.empty() || rest.starts_with('/');
  rest.remove_prefix(1);
  const std::string_view digits = rest.substr(0, rest.find('/'));
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (status != std::errc{} || end != digits.data() + digits.size() || port == 0) return false;
  rest.remove_prefix(digits.size());
  return true;
}

}  // namespace

std::string ServerAddress::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<ServerAddress> parse_server_url(std::string_view url) {
  const Error bad{"server " + quote(url) + " is not the address of an API server" + std::string(kForm)};
  ServerAddress server;
  std::string_view rest = url;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    if (rest.substr(0, scheme) != "https" && rest.substr(0, scheme) != "http") return bad;
    server.tls = rest.starts_with("https");
    rest.remove_prefix(scheme + 3);
  }
  server.port = server.tls ? 443 : 80;
  if (!is_plain(rest)) return bad;
  server.host = take_host(rest);
  if (server.host.empty() || server.host.find_first_of("[]") != std::string::npos) return bad;
  if (!take_port(rest, server.port)) return bad;
  while (rest.ends_with('/')) rest.remove_suffix(1);
  server.base_path = rest;
  return server;
}

}  // namespace mortise::kube
