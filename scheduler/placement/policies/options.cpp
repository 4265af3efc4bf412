#include "scheduler/placement/policies/options.h"

#include <algorithm>
#include <charconv>

#include "scheduler/placement/policy.h"

namespace mortise::placement {

PolicyOptions::PolicyOptions(std::string_view text) {
  while (!text.empty()) {
    text.remove_prefix(1);  // the colon
    const std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(part.size());
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      if (!error_) error_ = "'" + std::string(part) + "' is not of the form option=value";
      continue;
    }
    left_.push_back({part.substr(0, equals), part.substr(equals + 1)});
  }
}

std::optional<std::string_view> PolicyOptions::take(std::string_view key) {
  const auto found = std::find_if(left_.begin(), left_.end(), [&](const Option& option) { return option.key == key; });
  if (found == left_.end()) return std::nullopt;
  const std::string_view value = found->value;
  left_.erase(found);
  return value;
}

void PolicyOptions::refuse(std::string_view key, std::string_view value, const std::string& allowed) {
  if (error_) return;
  error_ = "option " + std::string(key) + "='" + std::string(value) + "'; allowed: " + allowed;
}

void PolicyOptions::number(std::string_view key, std::int64_t least, std::int64_t most,
                           std::optional<std::int64_t>& out) {
  const std::optional<std::string_view> text = take(key);
  if (!text) return;
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (status != std::errc{} || end != text->data() + text->size() || value < least || value > most) {
    refuse(key, *text, std::to_string(least) + ".." + std::to_string(most));
    return;
  }
  out = value;
}

Result<std::unique_ptr<Policy>> PolicyOptions::finish(std::unique_ptr<Policy> policy) const {
  if (error_) return Error{*error_};
  if (!left_.empty()) return Error{"unknown or repeated option '" + std::string(left_.front().key) + "'"};
  return policy;
}

}  // namespace mortise::placement
