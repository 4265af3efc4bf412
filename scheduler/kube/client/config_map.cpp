#include "scheduler/kube/client/config_map.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "scheduler/kube/client/json_body.h"
#include "scheduler/kube/client/resource_path.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

Result<ConfigMap> decode(std::string_view body) {
  const Result<json> document = parse_json_text(body, {});
  if (!document) return document.error();
  std::optional<Error> mistake;
  const Field root(*document, mistake);
  const Field metadata = root.member("metadata");
  ConfigMap map;
  map.ns = metadata.member("namespace").text();
  map.name = metadata.member("name").text();
  map.uid = metadata.member("uid").text();
  map.resource_version = metadata.member("resourceVersion").text();
  map.labels = metadata.member("labels").texts();
  map.annotations = metadata.member("annotations").texts();
  map.owners = decode_owners(metadata);
  map.data = root.member("data").texts();
  map.stored = body;
  if (mistake) return *mistake;
  return map;
}

json encode_owners(const std::vector<OwnerReference>& owners) {
  json all = json::array();
  for (const OwnerReference& owner : owners) {
    all.push_back({{"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}});
    if (owner.controller) all.back()["controller"] = true;
  }
  return all;
}

json encode(const ConfigMap& map) {
  json document = stored_object(map.stored, "v1", "ConfigMap");
  json& metadata = document["metadata"];
  metadata["namespace"] = map.ns;
  metadata["name"] = map.name;
  if (!map.uid.empty()) metadata["uid"] = map.uid;
  if (!map.resource_version.empty()) metadata["resourceVersion"] = map.resource_version;
  metadata["labels"] = map.labels;
  metadata["annotations"] = map.annotations;
  if (map.stored.empty()) metadata["ownerReferences"] = encode_owners(map.owners);
  document["data"] = map.data;
  return document;
}

}  // namespace

Answer<ConfigMap> read_config_map(ApiClient& client, const std::string& ns, const std::string& name,
                                  const CallOptions& call) {
  return answer_of<ConfigMap>(client.get(resource_path("/api/v1", ns, "configmaps", name), call), decode);
}

Answer<ConfigMap> create_config_map(ApiClient& client, const ConfigMap& map, const CallOptions& call) {
  return answer_of<ConfigMap>(client.post(resource_path("/api/v1", map.ns, "configmaps"), to_text(encode(map)), call),
                              decode);
}

Answer<ConfigMap> update_config_map(ApiClient& client, const ConfigMap& map, const CallOptions& call) {
  // The API server would take it, over whatever anybody else has written.
  if (map.resource_version.empty())
    return {Outcome::kRefused, "an update needs the resource version that it is based on"};
  return answer_of<ConfigMap>(
      client.put(resource_path("/api/v1", map.ns, "configmaps", map.name), to_text(encode(map)), call), decode);
}

Done delete_config_map(ApiClient& client, const std::string& ns, const std::string& name, const CallOptions& call) {
  return done_of(client.remove(resource_path("/api/v1", ns, "configmaps", name), {}, call));
}

}  // namespace mortise::kube
