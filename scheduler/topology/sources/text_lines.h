#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mortise::topology {

/// The lines of a text without line ends and without terminal escape sequences (colours, underlining).
std::vector<std::string> plain_lines(std::string_view text);

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
/// The words between blanks.
std::vector<std::string_view> words(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace mortise::topology
