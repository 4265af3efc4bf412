#pragma once

#include <string>
#include <string_view>

namespace mortise::extender {

/// Appends a JSON string; `text` must be UTF-8.
void append_string(std::string& out, std::string_view text);

/// Puts commas between the items of a list.
class Separator {
 public:
  void operator()(std::string& out) {
    if (!first_) out += ',';
    first_ = false;
  }

 private:
  bool first_ = true;
};

}  // namespace mortise::extender
