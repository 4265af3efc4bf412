#include "scheduler/kube/objects/pod_alignment.h"

#include <algorithm>
#include <array>
#include <string>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/resources.h"
#include "scheduler/topology/pod_qos.h"

namespace mortise::kube {
namespace {

using placement::NvlinkWish;
using placement::PodRequest;
using topology::ComputeAmounts;
using topology::QosClass;

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};
constexpr std::array kClasses = {Named<QosClass>{"Guaranteed", QosClass::kGuaranteed},
                                 Named<QosClass>{"Burstable", QosClass::kBurstable},
                                 Named<QosClass>{"BestEffort", QosClass::kBestEffort}};
constexpr std::array kPolicies = {
    Named<topology::TopologyPolicy>{"none", topology::TopologyPolicy::kNone},
    Named<topology::TopologyPolicy>{"best-effort", topology::TopologyPolicy::kBestEffort},
    Named<topology::TopologyPolicy>{"restricted", topology::TopologyPolicy::kRestricted},
    Named<topology::TopologyPolicy>{"single-numa-node", topology::TopologyPolicy::kSingleNumaNode}};
constexpr std::array kWishes = {Named<NvlinkWish>{"required", NvlinkWish::kRequired},
                                Named<NvlinkWish>{"preferred", NvlinkWish::kPreferred},
                                Named<NvlinkWish>{"ignore", NvlinkWish::kIgnore}};

template <class Value, std::size_t N>
Status read_annotation(const Pod& pod, std::string_view key, const std::array<Named<Value>, N>& values, Value& value) {
  const auto found = pod.annotations.find(std::string(key));
  if (found == pod.annotations.end()) return ok_status();
  std::string allowed;
  for (const Named<Value>& row : values) {
    if (row.name == found->second) {
      value = row.value;
      return ok_status();
    }
    allowed.append(allowed.empty() ? "" : ", ").append(row.name);
  }
  return Error{"annotation " + std::string(key) + " is " + quote(found->second) + "; allowed: " + allowed};
}

/// CPU and memory of a list, where it has none of one of them that of `otherwise`.
Result<ComputeAmounts> compute_amounts(const ResourceList& list, const ResourceList& otherwise,
                                       const ComputeAmounts& absent = {}) {
  ComputeAmounts amounts = absent;
  for (const ResourceInfo& resource : resource_table()) {
    if (resource.meaning != Meaning::kCpu && resource.meaning != Meaning::kMemory) continue;
    const auto amount = listed_amount(resource, list, otherwise);
    if (!amount) return amount.error();
    if (*amount) (resource.meaning == Meaning::kCpu ? amounts.cpu : amounts.memory) = **amount;
  }
  return amounts;
}

bool sets_pod_level_resources(const Pod& pod) {
  const auto counts = [](const auto& entry) {
    return entry.first == "cpu" || entry.first == "memory" || entry.first.starts_with("hugepages-");
  };
  return std::any_of(pod.requests.begin(), pod.requests.end(), counts) ||
         std::any_of(pod.limits.begin(), pod.limits.end(), counts);
}

/// `request` has the sums over the containers. The API server tells the class of every pod that it has seen.
Result<QosClass> qos_class(const Pod& pod, const PodRequest& request) {
  for (const Named<QosClass>& row : kClasses) {
    if (row.name == pod.qos_class) return row.value;
  }
  topology::QosSums sums;
  const auto add = [&](const Result<ComputeAmounts>& asked, const ResourceList& limits) -> Status {
    if (!asked) return asked.error();
    const auto most = compute_amounts(limits, {});
    if (!most) return most.error();
    sums.add(*asked, *most);
    return ok_status();
  };
  if (request.pod_level_resources) {
    const Status added = add(compute_amounts(pod_level_requests(pod), {}, {request.cpu, request.memory}), pod.limits);
    if (!added) return Error{"spec.resources: " + added.message()};
    return sums.classify();
  }
  for (const Container& container : pod.containers) {
    const Status added = add(compute_amounts(container.requests, container.limits), container.limits);
    if (!added) return Error{"container " + quote(container.name) + ": " + added.message()};
  }
  return sums.classify();
}

}  // namespace

ResourceList pod_level_requests(const Pod& pod) {
  ResourceList requests = pod.requests;
  for (const auto& [name, limit] : pod.limits) {
    const bool of_containers =
        std::any_of(pod.containers.begin(), pod.containers.end(), [&name = name](const Container& container) {
          return container.requests.contains(name) || container.limits.contains(name);
        });
    if (!of_containers) requests.emplace(name, limit);
  }
  return requests;
}

Status add_alignment(const Pod& pod, PodRequest& request) {
  request.pod_level_resources = sets_pod_level_resources(pod);
  const auto qos = qos_class(pod, request);
  if (!qos) return qos.error();
  request.qos = *qos;
  const Status policy = read_annotation(pod, kTopologyPolicyAnnotation, kPolicies, request.topology_policy);
  if (!policy) return policy;
  return read_annotation(pod, kNvlinkAnnotation, kWishes, request.nvlink);
}

}  // namespace mortise::kube
