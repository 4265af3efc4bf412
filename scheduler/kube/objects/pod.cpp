#include "scheduler/kube/objects/pod.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/json_text.h"

namespace mortise::kube {
namespace {

Container decode_container(const Field& field, placement::ContainerKind kind) {
  Container container;
  container.name = field.member("name").text();
  container.kind = kind;
  const Field resources = field.member("resources");
  container.requests = resources.member("requests").quantities();
  container.limits = resources.member("limits").quantities();
  return container;
}

}  // namespace

Result<Pod> decode_pod(const nlohmann::json& document) {
  std::optional<Error> mistake;
  const Field root(document, mistake);
  if (!root.present()) return Error{"a Pod must be an object, not null"};
  Pod pod;
  const Field metadata = root.member("metadata");
  pod.ns = metadata.member("namespace").text();
  pod.name = metadata.member("name").text();
  pod.uid = metadata.member("uid").text();
  pod.deleting = metadata.member("deletionTimestamp").present();
  pod.labels = metadata.member("labels").texts();
  pod.annotations = metadata.member("annotations").texts();

  const Field spec = root.member("spec");
  pod.node_name = spec.member("nodeName").text();
  pod.node_selector = spec.member("nodeSelector").texts();
  pod.overhead = spec.member("overhead").quantities();
  pod.requests = spec.member("resources").member("requests").quantities();
  pod.limits = spec.member("resources").member("limits").quantities();
  for (const Field& field : spec.member("initContainers").items()) {
    const bool stays = field.member("restartPolicy").text() == "Always";
    const auto kind = stays ? placement::ContainerKind::kSidecar : placement::ContainerKind::kInit;
    pod.containers.push_back(decode_container(field, kind));
  }
  for (const Field& field : spec.member("containers").items()) {
    pod.containers.push_back(decode_container(field, placement::ContainerKind::kApp));
  }
  const Field status = root.member("status");
  pod.phase = status.member("phase").text();
  pod.qos_class = status.member("qosClass").text();
  if (mistake) return *mistake;
  return pod;
}

Result<Pod> parse_pod(std::string_view json) {
  const Result<nlohmann::json> document = parse_json_text(json, {});
  if (!document) return document.error();
  return decode_pod(*document);
}

}  // namespace mortise::kube
