#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::placement {

class Policy;

/// The `option=value` parts of a policy's spelling. A maker takes what it knows; `finish` refuses the rest.
class PolicyOptions {
 public:
  /// `text` is what follows the name: "" or ":a=b:c=d".
  explicit PolicyOptions(std::string_view text);

  template <class T>
  void choice(std::string_view key, std::initializer_list<std::pair<std::string_view, T>> values, T& out) {
    const std::optional<std::string_view> text = take(key);
    if (!text) return;
    std::string allowed;
    for (const auto& [name, value] : values) {
      if (name == *text) {
        out = value;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    }
    refuse(key, *text, allowed);
  }
  void number(std::string_view key, std::int64_t least, std::int64_t most, std::optional<std::int64_t>& out);

  /// The policy, or the first thing that was wrong.
  Result<std::unique_ptr<Policy>> finish(std::unique_ptr<Policy> policy) const;

 private:
  struct Option {
    std::string_view key;
    std::string_view value;
  };
  std::optional<std::string_view> take(std::string_view key);
  void refuse(std::string_view key, std::string_view value, const std::string& allowed);

  std::vector<Option> left_;
  std::optional<std::string> error_;
};

}  // namespace mortise::placement
