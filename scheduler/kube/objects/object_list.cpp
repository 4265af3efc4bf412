#include "scheduler/kube/objects/object_list.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/base/quantity.h"
#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/assigned_devices.h"
#include "scheduler/kube/objects/bound_pods.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/node_topology.h"
#include "scheduler/kube/objects/time_text.h"

namespace mortise::kube {
namespace {

using nlohmann::json;

constexpr std::string_view kAllowed = "allowed: Node, Pod, NodeResourceTopology, or a List of them";
constexpr std::string_view kTopologyGroup = "topology.node.k8s.io/";
constexpr std::string_view kTopologyKind = "NodeResourceTopology";

/// A member of an object, or null.
const json& member(const json& object, const char* key) {
  static const json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_member(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// The kind of an object that does not say it (dumps of single objects by tools often do not).
std::string kind_by_fields(const json& object) {
  if (object.contains("items")) return "List";
  const json& spec = member(object, "spec");
  if (spec.is_object() && spec.contains("containers")) return "Pod";
  const json& status = member(object, "status");
  if (status.is_object() && (status.contains("allocatable") || status.contains("capacity"))) return "Node";
  return {};
}

/// Objects of other API groups may have the same kind.
bool is_core(const json& object) {
  const std::string version = text_member(object, "apiVersion");
  return version.empty() || version == "v1";
}

/// Items of a typed list carry no version of their own.
bool is_topology_report(const json& object, std::string_view kind) {
  const std::string version = text_member(object, "apiVersion");
  return kind.starts_with(kTopologyKind) && (version.empty() || version.starts_with(kTopologyGroup));
}

std::int64_t number_in(const std::map<std::string, std::string>& texts, const char* key) {
  const auto found = texts.find(key);
  if (found == texts.end()) return 0;
  const Result<Quantity> number = Quantity::parse(found->second);
  return number ? number->rounded_up() : 0;
}

/// Says where a node's count of GPUs is not what its labels or its capacity let one expect.
void note_gpu_count(const Node& node, const placement::NodeSpec& spec, Notes& notes) {
  if (number_in(node.capacity, "nvidia.com/gpu") > spec.gpus) {
    notes.add_one_of("nodes with fewer nvidia.com/gpu allocatable than capacity count the allocatable ones", node.name);
  } else if (spec.gpus == 0 && number_in(node.labels, "nvidia.com/gpu.count") > 0) {
    notes.add_one_of(
        "nodes with GPUs by their label nvidia.com/gpu.count but no nvidia.com/gpu in their status count "
        "as without GPUs",
        node.name);
  } else if (spec.gpus > 0 && number_in(node.labels, "nvidia.com/gpu.replicas") > 1) {
    notes.add_one_of(
        "nodes whose nvidia.com/gpu are replicas of shared GPUs (label nvidia.com/gpu.replicas) count "
        "each replica as a GPU",
        node.name);
  }
}

}  // namespace

Status ObjectList::add_document(const json& document, const std::string& where) {
  if (document.is_null()) return ok_status();  // an empty YAML document
  if (document.is_array()) return add_list(document, {}, where);
  return add_object(document, {}, false, where);
}

Status ObjectList::add_list(const json& list, std::string_view item_kind, const std::string& where) {
  if (list.is_null()) return ok_status();
  if (!list.is_array()) return Error{where + "items must be an array"};
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Status added = add_object(list[i], item_kind, true, where + "items[" + std::to_string(i) + "]: ");
    if (!added) return added;
  }
  return ok_status();
}

Status ObjectList::add_object(const json& object, std::string_view default_kind, bool in_list,
                              const std::string& where) {
  if (!object.is_object()) return Error{where + "must be a Kubernetes object; " + std::string(kAllowed)};
  std::string kind = text_member(object, "kind");
  if (kind.empty()) kind = default_kind;
  if (kind.empty()) kind = kind_by_fields(object);
  if (kind.empty()) return Error{where + "no kind; " + std::string(kAllowed)};
  if (is_topology_report(object, kind)) {
    if (kind == kTopologyKind) return add_report(object, where);
    return add_list(member(object, "items"), kTopologyKind, where);
  }
  if (is_core(object)) {
    if (kind == "Node") return add_node(object, where);
    if (kind == "Pod") return add_pod(object, where);
    if (in_list && kind.ends_with("List")) return Error{where + "a list inside a list; " + std::string(kAllowed)};
    if (kind == "List") return add_list(member(object, "items"), {}, where);
    if (kind == "NodeList") return add_list(member(object, "items"), "Node", where);
    if (kind == "PodList") return add_list(member(object, "items"), "Pod", where);
  }
  const std::string version = text_member(object, "apiVersion");
  if (find_group_kind(version, kind)) {
    auto group = decode_group_object(object);
    if (!group) return Error{where + group.message()};
    cluster_.groups.push_back(*std::move(group));
    return ok_status();
  }
  const json& metadata = member(object, "metadata");
  notes_.add_one_of("objects of kind " + quote(kind) + " are left out",
                    metadata.is_object() ? text_member(metadata, "name") : std::string());
  return ok_status();
}

Status ObjectList::add_node(const json& object, const std::string& where) {
  Result<Node> node = decode_node(object);
  if (!node) return Error{where + node.message()};
  Result<placement::NodeSpec> spec = node_spec(*node);
  if (!spec) return Error{where + spec.message()};
  if (!node_index_.emplace(node->name, cluster_.nodes.size()).second) {
    return Error{where + "node " + quote(node->name) + " appears twice; each name may appear once"};
  }
  note_gpu_count(*node, *spec, notes_);
  cluster_.labels.push_back(node->labels);
  if (spec->gpus > 0) gpu_nodes_.emplace_back(cluster_.nodes.size(), *std::move(node));
  cluster_.nodes.push_back(*std::move(spec));
  return ok_status();
}

/// A report that cannot be read costs the node its topology, as its annotation does; the node is still there.
Status ObjectList::add_report(const json& object, const std::string& where) {
  const json& metadata = member(object, "metadata");
  const std::string name = metadata.is_object() ? text_member(metadata, "name") : std::string();
  if (reports_.contains(name)) {
    return Error{where + std::string(kTopologyKind) + " " + quote(name) + " appears twice; each name may appear once"};
  }
  auto report = topology::decode_node_topology(object, "");
  if (report) {
    reports_.emplace(name, *std::move(report));
  } else {
    notes_.add_one_of(std::string(kTopologyKind) + " left out: " + report.message(), name);
  }
  return ok_status();
}

Status ObjectList::find_topologies() {
  NodeTopologies topologies(catalogue_, notes_);
  for (const auto& [place, node] : gpu_nodes_) {
    const auto report = reports_.find(node.name);
    const Status found =
        topologies.find(node, report == reports_.end() ? nullptr : &report->second, cluster_.nodes[place]);
    if (!found) return found;
  }
  for (const auto& [name, report] : reports_) {
    if (!node_index_.contains(name)) {
      notes_.add_one_of("NodeResourceTopology objects of nodes that are not in the file are left out", name);
    }
  }
  return ok_status();
}

Status ObjectList::add_pod(const json& object, const std::string& where) {
  Result<Pod> pod = decode_pod(object);
  if (!pod) return Error{where + pod.message()};
  if (pod->name.empty()) return Error{where + "metadata.name of the Pod is missing"};
  if (!pod_seen_.emplace(pod->key(), true).second) {
    return Error{where + "pod " + quote(pod->key()) + " appears twice; each name may appear once in a namespace"};
  }
  if (pod->terminal()) return ok_status();
  if (pod->node_name.empty()) {
    notes_.add_one_of("pods that are not bound to a node are left out", pod->key());
    return ok_status();
  }
  pods_.push_back(*std::move(pod));
  return ok_status();
}

void ObjectList::bind(const Pod& pod) {
  const auto node = node_index_.find(pod.node_name);
  if (node == node_index_.end()) {
    notes_.add_one_of("pods on nodes that are not in the file are left out", pod.key());
    return;
  }
  Result<placement::PodRequest> request = pod_request(pod);
  if (!request) {
    close_node(cluster_.nodes[node->second], pod.key(), request.message(), notes_);
    return;
  }
  BoundPod bound{*std::move(request), pod.node_name, {}};
  if (!pod.start_time.empty()) {
    const Result<Nanoseconds> start = parse_time(pod.start_time);
    if (start) {
      bound.start = *start;
    } else {
      notes_.add("pod " + quote(pod.key()) + " counts as not started: status.startTime " + start.message());
    }
  }
  const auto annotation = pod.annotations.find(std::string(kAssignedDevicesAnnotation));
  if (annotation != pod.annotations.end() && bound.request.gpus > 0) {
    const Result<AssignedDevices> assigned = parse_assigned_devices(annotation->second);
    if (!assigned) {
      notes_.add("pod " + quote(pod.key()) + ": annotation " + std::string(kAssignedDevicesAnnotation) + " " +
                 quote(annotation->second) + " is not read: " + assigned.message());
    } else if (assigned->by_uuid) {
      notes_.add_one_of(
          "pods whose devices are named by UUID, which a file does not map to indices, count on the "
          "lowest free devices",
          pod.key());
    } else {
      bound.devices = assigned->devices;
    }
  }
  cluster_.pods.push_back(std::move(bound));
  cluster_.placed.push_back(pod);
}

Result<ClusterFile> ObjectList::finish(const std::string& file_name) {
  if (cluster_.nodes.empty()) return Error{file_name + ": no Node in the file; " + std::string(kAllowed)};
  if (const Status found = find_topologies(); !found) return Error{file_name + ": " + found.message()};
  for (const Pod& pod : pods_) bind(pod);
  settle_bound_pods(cluster_, notes_);
  cluster_.notes = notes_.lines();
  return std::move(cluster_);
}

}  // namespace mortise::kube
