#pragma once

#include <string>
#include <string_view>

namespace mortise {

/// Foreign text made fit for a one-line message: cut after 80 bytes, and with control characters, bytes that are not
/// UTF-8 and the percent sign written as \xNN (kube-scheduler passes messages of an extender through a format string).
std::string one_line(std::string_view text);

/// The same in double quotes.
std::string quote(std::string_view text);

}  // namespace mortise
