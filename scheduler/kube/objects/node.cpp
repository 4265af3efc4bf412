#include "scheduler/kube/objects/node.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/api_text.h"
#include "scheduler/kube/objects/decode.h"
#include "scheduler/kube/objects/field.h"
#include "scheduler/kube/objects/resources.h"
#include "traces/limits.h"

namespace mortise::kube {
namespace {

constexpr std::int64_t kDefaultPods = 110;  // kubelet's default

/// The most that is believed of a node; sums over a cluster then stay within 64 bits.
std::int64_t largest(Meaning meaning) {
  switch (meaning) {
    case Meaning::kCpu:
      return traces::kMaxCpuMilli;
    case Meaning::kMemory:
      return traces::kMaxMemoryMib * kMiB;
    case Meaning::kGpus:
    case Meaning::kGpuShare:
      return placement::kMaxDevices;
    case Meaning::kPods:
      break;
  }
  return std::numeric_limits<std::int32_t>::max();
}

std::string gpu_model(const Node& node) {
  for (const char* label : {"nvidia.com/gpu.product", "alibabacloud.com/gpu-card-model"}) {
    if (const auto found = node.labels.find(label); found != node.labels.end()) return found->second;
  }
  return {};
}

/// Names are words in our outputs.
bool is_one_word(const std::string& name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return (c >= '\0' && c <= ' ') || c == '\x7f' || c == ',' || c == '"';
  });
}

/// What the node has of a resource; empty when it does not list it.
Result<std::optional<std::int64_t>> node_amount(const Node& node, const ResourceInfo& resource) {
  auto amount = listed_amount(resource, node.allocatable, node.capacity);
  if (!amount) return amount.error();
  if (*amount && **amount > largest(resource.meaning)) {
    return Error{std::string(resource.name) + ": too large; the most a node may have is " +
                 std::to_string(largest(resource.meaning)) +
                 (resource.meaning == Meaning::kCpu      ? " milli-CPU"
                  : resource.meaning == Meaning::kMemory ? " bytes"
                                                         : "")};
  }
  return amount;
}

}  // namespace

Result<Node> decode_node(const nlohmann::json& document) {
  std::optional<Error> mistake;
  const Field root(document, mistake);
  Node node;
  const Field metadata = root.member("metadata");
  node.name = metadata.member("name").text();
  node.uid = metadata.member("uid").text();
  node.resource_version = metadata.member("resourceVersion").text();
  node.labels = metadata.member("labels").texts();
  node.annotations = metadata.member("annotations").texts();
  node.unschedulable = root.member("spec").member("unschedulable").flag();
  const Field status = root.member("status");
  node.capacity = status.member("capacity").quantities();
  node.allocatable = status.member("allocatable").quantities();
  node.kubelet_version = status.member("nodeInfo").member("kubeletVersion").text();
  if (mistake) return *mistake;
  if (!is_one_word(node.name)) {
    return Error{"metadata.name " + quote(node.name) +
                 " is not a node name; it must not be empty or hold blanks, commas or quotes"};
  }
  return node;
}

Result<Node> parse_node(std::string_view json) {
  const Result<nlohmann::json> document = parse_api_text(json, {});
  if (!document) return document.error();
  return decode_node(*document);
}

Result<placement::NodeSpec> node_spec(const Node& node) {
  placement::NodeSpec spec;
  spec.name = node.name;
  spec.model = gpu_model(node);
  spec.schedulable = !node.unschedulable;
  spec.pods = kDefaultPods;
  bool has_gpus = false;
  for (const ResourceInfo& resource : resource_table()) {
    if (!resource.of_nodes) continue;
    const auto amount = node_amount(node, resource);
    if (!amount) return Error{"node " + quote(node.name) + ": " + amount.message()};
    if (!*amount) continue;
    switch (resource.meaning) {
      case Meaning::kCpu:
        spec.cpu = **amount;
        break;
      case Meaning::kMemory:
        spec.memory = **amount;
        break;
      case Meaning::kPods:
        spec.pods = static_cast<std::int32_t>(**amount);
        break;
      case Meaning::kGpus:
        if (!std::exchange(has_gpus, true)) spec.gpus = static_cast<std::int32_t>(**amount);
        break;
      case Meaning::kGpuShare:
        break;
    }
  }
  return spec;
}

}  // namespace mortise::kube
