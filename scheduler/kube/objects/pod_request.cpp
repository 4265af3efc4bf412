#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/base/quote.h"
#include "scheduler/kube/objects/pod.h"
#include "scheduler/kube/objects/pod_alignment.h"
#include "scheduler/kube/objects/resources.h"
#include "traces/limits.h"
#include "traces/workload.h"

namespace mortise::kube {
namespace {

using placement::ContainerAsk;
using placement::PodRequest;

constexpr std::string_view kProductLabel = "nvidia.com/gpu.product";
// Pods of the openb trace as the published simulator reads them: so many GPUs, and of each so many thousandths.
constexpr ResourceInfo kCountAnnotation = {"alibabacloud.com/gpu-count", Meaning::kGpus, false, true};
constexpr ResourceInfo kMilliAnnotation = {"alibabacloud.com/gpu-milli", Meaning::kGpuShare, false, true};
constexpr std::string_view kModelAnnotation = "alibabacloud.com/gpu-card-model";

std::int64_t add(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max();
  return a > kTop - b ? kTop : a + b;
}

/// What no node has is refused or overbooked whatever its amount; the sums over many such pods stay within 64 bits.
constexpr std::int64_t kTooMuchCpu = traces::kMaxCpuMilli + 1;
constexpr std::int64_t kTooMuchMemory = traces::kMaxMemoryMib * kMiB + 1;

/// No node has that many; what matters is that none is lost.
std::int32_t device_count(std::int64_t count) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(count, std::numeric_limits<std::int32_t>::max()));
}

Status ask_for_share(const ResourceInfo& resource, std::int64_t milli, ContainerAsk& ask) {
  if (milli == 0) return ok_status();
  if (ask.gpus > 0) return Error{"asks for whole GPUs and for " + std::string(resource.name) + "; only one can be met"};
  if (milli > kWholeGpu && milli % kWholeGpu != 0) {
    return Error{std::string(resource.name) + ": invalid quantity \"" + std::to_string(milli) +
                 "\": neither a share of one GPU (1 to 1000) nor a multiple of 1000"};
  }
  ask.gpus = milli < kWholeGpu ? 1 : device_count(milli / kWholeGpu);
  ask.gpu_milli = std::min(milli, kWholeGpu);
  return ok_status();
}

Result<ContainerAsk> container_ask(const Container& container) {
  ContainerAsk ask;
  ask.name = container.name;
  ask.kind = container.kind;
  for (const ResourceInfo& resource : resource_table()) {
    if (!resource.of_pods) continue;
    const auto amount = listed_amount(resource, container.requests, container.limits);
    if (!amount) return amount.error();
    switch (resource.meaning) {
      case Meaning::kCpu:
        ask.cpu = std::min(amount->value_or(0), kTooMuchCpu);
        break;
      case Meaning::kMemory:
        ask.memory = std::min(amount->value_or(0), kTooMuchMemory);
        break;
      case Meaning::kGpus:
        ask.gpus = device_count(amount->value_or(0));
        ask.kubelet_gpus = amount->has_value();
        break;
      case Meaning::kGpuShare:
        if (const Status share = ask_for_share(resource, amount->value_or(0), ask); !share) return share.error();
        break;
      case Meaning::kPods:
        break;
    }
  }
  return ask;
}

Result<std::int64_t> annotated_amount(const Pod& pod, const ResourceInfo& annotation) {
  const auto amount = listed_amount(annotation, pod.annotations, {});
  if (!amount) return Error{"annotation " + amount.message()};
  return amount->value_or(0);
}

Status add_annotated_gpus(const Pod& pod, PodRequest& request) {
  const auto count = annotated_amount(pod, kCountAnnotation);
  if (!count) return count.error();
  const auto milli = annotated_amount(pod, kMilliAnnotation);
  if (!milli) return milli.error();
  if (*count == 0 && *milli == 0) return ok_status();
  if (*count == 0 || *milli == 0 || *milli > kWholeGpu || (*count > 1 && *milli < kWholeGpu)) {
    return Error{"annotations alibabacloud.com/gpu-count " + std::to_string(*count) + " and gpu-milli " +
                 std::to_string(*milli) +
                 " do not go together; allowed: count 1 with milli 1 to 1000, a higher count "
                 "with milli 1000"};
  }
  if (request.gpus > 0) return Error{"asks for GPUs both by resource and by alibabacloud.com/gpu-count; use one"};
  request.gpus = device_count(*count);
  request.gpu_milli = *milli;
  const auto asker = std::find_if(request.asks.begin(), request.asks.end(),
                                  [](const ContainerAsk& ask) { return ask.kind == placement::ContainerKind::kApp; });
  if (asker != request.asks.end()) {
    asker->gpus = request.gpus;
    asker->gpu_milli = request.gpu_milli;
  }
  return ok_status();
}

/// CPU and memory set for the pod as a whole stand in place of the sum over its containers; overhead comes on top.
Status add_pod_level(const Pod& pod, PodRequest& request) {
  const ResourceList requests = pod_level_requests(pod);
  for (const ResourceInfo& resource : resource_table()) {
    if (resource.meaning != Meaning::kCpu && resource.meaning != Meaning::kMemory) continue;
    std::int64_t& total = resource.meaning == Meaning::kCpu ? request.cpu : request.memory;
    const auto whole = listed_amount(resource, requests, {});
    if (!whole) return Error{"spec.resources: " + whole.message()};
    total = whole->value_or(total);
    const auto overhead = listed_amount(resource, pod.overhead, {});
    if (!overhead) return Error{"spec.overhead: " + overhead.message()};
    const bool cpu = resource.meaning == Meaning::kCpu;
    total = std::min(add(total, overhead->value_or(0)), cpu ? kTooMuchCpu : kTooMuchMemory);
  }
  return ok_status();
}

Status add_models(const Pod& pod, PodRequest& request) {
  if (const auto listed = pod.annotations.find(std::string(kModelAnnotation)); listed != pod.annotations.end()) {
    request.models = traces::split_models(listed->second);
  }
  const auto selected = pod.node_selector.find(std::string(kProductLabel));
  if (selected == pod.node_selector.end()) return ok_status();
  const bool meets = std::binary_search(request.models.begin(), request.models.end(), selected->second);
  if (!request.models.empty() && !meets) {
    return Error{"nodeSelector asks for GPU model " + quote(selected->second) + ", which annotation " +
                 std::string(kModelAnnotation) + " does not allow"};
  }
  request.models = {selected->second};
  return ok_status();
}

}  // namespace

Result<PodRequest> pod_request(const Pod& pod) {
  PodRequest request;
  request.ns = pod.ns;
  request.name = pod.name;
  request.uid = pod.uid;
  request.priority = pod.priority;

  std::vector<ContainerAsk> asks;
  for (const Container& container : pod.containers) {
    Result<ContainerAsk> ask = container_ask(container);
    if (!ask) return Error{"container " + quote(container.name) + ": " + ask.message()};
    asks.push_back(*std::move(ask));
  }
  if (const Status counted = placement::count_containers(asks, request); !counted) return counted.error();
  for (const auto step : {add_alignment, add_annotated_gpus, add_pod_level, add_models}) {
    if (const Status done = step(pod, request); !done) return done.error();
  }
  return request;
}

}  // namespace mortise::kube
