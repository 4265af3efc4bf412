#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mortise::kube {

/// Standard base64 with padding (RFC 4648, section 4); line breaks are passed over. Empty on anything else.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace mortise::kube
