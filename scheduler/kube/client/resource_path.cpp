#include "scheduler/kube/client/resource_path.h"

namespace mortise::kube {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4U], kHex[byte & 0xFU]};
    }
  }
  return out;
}

std::string resource_path(std::string_view prefix, std::string_view ns, std::string_view plural, std::string_view name,
                          std::string_view subresource) {
  std::string path(prefix);
  if (!ns.empty()) path += "/namespaces/" + percent_encode(ns);
  path += "/" + percent_encode(plural);
  if (!name.empty()) path += "/" + percent_encode(name);
  if (!subresource.empty()) path += "/" + percent_encode(subresource);
  return path;
}

std::string with_query(std::string path,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> parameters) {
  char mark = '?';
  for (const auto& [key, value] : parameters) {
    if (value.empty()) continue;
    path += mark + std::string(key) + "=" + percent_encode(value);
    mark = '&';
  }
  return path;
}

}  // namespace mortise::kube
