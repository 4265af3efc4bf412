#include "scheduler/kube/client/json_body.h"

#include <nlohmann/json.hpp>

#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {

using nlohmann::json;

std::string to_text(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

json stored_object(const std::string& text, const char* api_version, const char* kind) {
  const auto read = parse_json_text(text, {});
  json document = read && read->is_object() ? *read : json::object();
  document["apiVersion"] = api_version;
  document["kind"] = kind;
  if (!document["metadata"].is_object()) document["metadata"] = json::object();
  return document;
}

}  // namespace mortise::kube
