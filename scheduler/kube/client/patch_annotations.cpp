#include "scheduler/kube/client/patch_annotations.h"

#include <nlohmann/json.hpp>

#include "scheduler/kube/client/json_body.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

Result<ObjectName> decode(std::string_view body) {
  const Result<nlohmann::json> document = parse_json_text(body, {});
  if (!document) return document.error();
  return read_object_name(*document);
}

}  // namespace

Answer<ObjectName> patch_annotations(ApiClient& client, const AnnotationPatch& patch, const CallOptions& call) {
  nlohmann::json metadata = nlohmann::json::object();
  if (!patch.uid.empty()) metadata["uid"] = patch.uid;
  if (!patch.resource_version.empty()) metadata["resourceVersion"] = patch.resource_version;
  nlohmann::json& annotations = metadata["annotations"] = nlohmann::json::object();
  for (const auto& [name, value] : patch.annotations) {
    annotations[name] = value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  }
  const nlohmann::json body = {{"metadata", metadata}};
  return answer_of<ObjectName>(client.patch(patch.path, to_text(body), call), decode);
}

}  // namespace mortise::kube
