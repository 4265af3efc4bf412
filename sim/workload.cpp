#include "sim/workload.h"

#include <map>
#include <tuple>
#include <utility>

namespace mortise::sim {

namespace {

placement::PodRequest request_from(const placement::PodClass& pod, Bytes memory) {
  placement::PodRequest request;
  request.cpu = pod.cpu;
  request.memory = memory;
  request.gpus = pod.gpus;
  if (pod.gpus > 0) request.gpu_milli = pod.gpu_milli;
  request.models = pod.models;
  return request;
}

}  // namespace

Workload::Workload(traces::Trace trace) : trace_(std::move(trace)) {
  using Key = std::tuple<MilliCpu, Bytes, std::int32_t, MilliGpu, std::vector<std::string>>;
  std::map<Key, std::uint32_t> known;
  classes_.reserve(trace_.pods.size());
  request_of_.reserve(trace_.pods.size());
  for (const traces::PodRecord& pod : trace_.pods) {
    classes_.push_back({pod.cpu, pod.gpu_milli, pod.gpus, pod.gpu_spec, traces::split_models(pod.gpu_spec)});
    const placement::PodClass& pod_class = classes_.back();
    const auto next = static_cast<std::uint32_t>(requests_.size());
    const auto [entry, is_new] =
        known.try_emplace({pod.cpu, pod.memory, pod.gpus, pod.gpu_milli, pod_class.models}, next);
    if (is_new) requests_.push_back(request_from(pod_class, pod.memory));
    request_of_.push_back(entry->second);
  }
}

}  // namespace mortise::sim
