#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace mortise::kube {

/// Everything but letters, digits, `-`, `.`, `_` and `~` as %XX (RFC 3986).
std::string percent_encode(std::string_view text);

/// `PREFIX/namespaces/NS/PLURAL/NAME[/SUBRESOURCE]`, encoded; `prefix` is as in `/api/v1`. An empty namespace is left
/// out with the word before it, and so is an empty name or subresource.
std::string resource_path(std::string_view prefix, std::string_view ns, std::string_view plural,
                          std::string_view name = {}, std::string_view subresource = {});

/// `path?a=b&c=d`, values encoded; those that are empty are left out.
std::string with_query(std::string path,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> parameters);

}  // namespace mortise::kube
