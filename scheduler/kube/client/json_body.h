#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mortise::kube {

/// JSON text to send. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const nlohmann::json& document);

/// The object that the server has, to be changed and written back, from its text; a new one when that is empty.
/// `metadata` is there.
nlohmann::json stored_object(const std::string& text, const char* api_version, const char* kind);

}  // namespace mortise::kube
