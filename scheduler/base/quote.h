#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mortise {

/// Foreign text made fit for a one-line message: cut after `limit` bytes, and with control characters, bytes that are
/// not UTF-8 and the percent sign written as \xNN (kube-scheduler passes messages of an extender through a format
/// string).
std::string one_line(std::string_view text, std::size_t limit = 80);

/// The same in double quotes.
std::string quote(std::string_view text);

/// Well-formed UTF-8 throughout.
bool is_utf8(std::string_view text);

}  // namespace mortise
