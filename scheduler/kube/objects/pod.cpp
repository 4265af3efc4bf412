#include "scheduler/kube/objects/pod.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/kube/objects/api_text.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/field.h"

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

void decode_status(const Field& status, Pod& pod) {
  pod.phase = status.member("phase").text();
  pod.qos_class = status.member("qosClass").text();
  pod.nominated_node_name = status.member("nominatedNodeName").text();
  pod.start_time = status.member("startTime").text();
  for (const Field& condition : status.member("conditions").items()) {
    const std::string type = condition.member("type").text();
    const std::string status_text = condition.member("status").text();
    const std::string reason = condition.member("reason").text();
    if (type == "PodScheduled") pod.scheduled = {status_text, reason, condition.member("message").text()};
    // Written before the pod is deleted (pkg/scheduler/framework/preemption/executor.go).
    if (type == "DisruptionTarget" && status_text == "True" && reason == "PreemptionByScheduler") pod.preempted = true;
  }
}

}  // namespace

std::vector<OwnerReference> decode_owners(const Field& metadata) {
  std::vector<OwnerReference> owners;
  for (const Field& owner : metadata.member("ownerReferences").items()) {
    owners.push_back({owner.member("apiVersion").text(), owner.member("kind").text(), owner.member("name").text(),
                      owner.member("uid").text(), owner.member("controller").flag()});
  }
  return owners;
}

Result<Pod> decode_pod(const nlohmann::json& document) {
  std::optional<Error> mistake;
  const Field root(document, mistake);
  if (!root.present()) return Error{"a Pod must be an object, not null"};
  Pod pod;
  const Field metadata = root.member("metadata");
  pod.ns = metadata.member("namespace").text();
  pod.name = metadata.member("name").text();
  pod.uid = metadata.member("uid").text();
  pod.resource_version = metadata.member("resourceVersion").text();
  pod.deleting = metadata.member("deletionTimestamp").present();
  pod.labels = metadata.member("labels").texts();
  pod.annotations = metadata.member("annotations").texts();
  pod.owners = decode_owners(metadata);

  const Field spec = root.member("spec");
  pod.node_name = spec.member("nodeName").text();
  pod.scheduler_name = spec.member("schedulerName").text();
  pod.gated = !spec.member("schedulingGates").items().empty();
  pod.priority = static_cast<std::int32_t>(spec.member("priority").whole(32).value_or(0));
  pod.preemption_policy = spec.member("preemptionPolicy").text();
  pod.pod_group = spec.member("schedulingGroup").member("podGroupName").text();
  const Field workload = spec.member("workloadRef");
  pod.workload = {workload.member("name").text(), workload.member("podGroup").text(),
                  workload.member("podGroupReplicaKey").text()};
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
  decode_status(root.member("status"), pod);
  if (mistake) return *mistake;
  return pod;
}

Result<Pod> parse_pod(std::string_view json) {
  const Result<nlohmann::json> document = parse_api_text(json, {});
  if (!document) return document.error();
  return decode_pod(*document);
}

}  // namespace mortise::kube
