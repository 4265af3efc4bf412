#include "scheduler/placement/alignment.h"

#include <utility>

#include "scheduler/placement/request.h"

namespace mortise::placement {
namespace {

topology::ContainerRole role_of(ContainerKind kind) {
  switch (kind) {
    case ContainerKind::kInit:
      return topology::ContainerRole::kInit;
    case ContainerKind::kSidecar:
      return topology::ContainerRole::kSidecar;
    case ContainerKind::kApp:
      break;
  }
  return topology::ContainerRole::kApp;
}

topology::ContainerAsk ask_of(const ContainerAsk& container) {
  topology::ContainerAsk ask;
  ask.name = container.name;
  ask.role = role_of(container.kind);
  ask.cpu = container.cpu;
  if (container.kubelet_gpus) ask.devices.push_back({0, container.gpus});
  if (container.memory > 0) ask.memory.push_back({0, container.memory});
  return ask;
}

std::vector<std::int64_t> key_of(const PodAlignment& alignment) {
  const topology::PodAsk& ask = alignment.ask;
  std::vector<std::int64_t> key = {static_cast<std::int64_t>(alignment.at_least), alignment.nvlink_required,
                                   alignment.gpus, static_cast<std::int64_t>(ask.qos), ask.pod_level_resources};
  for (const topology::ContainerAsk& container : ask.containers) {
    key.push_back(static_cast<std::int64_t>(container.role));
    key.push_back(container.cpu);
    key.push_back(container.devices.empty() ? -1 : container.devices.front().count);
    key.push_back(container.memory.empty() ? 0 : container.memory.front().size);
  }
  return key;
}

}  // namespace

PodAlignment alignment_of(const PodRequest& pod) {
  PodAlignment alignment;
  alignment.at_least = pod.topology_policy;
  alignment.nvlink_required = pod.nvlink == NvlinkWish::kRequired && pod.gpus > 1;
  alignment.ask.qos = pod.qos;
  alignment.ask.pod_level_resources = pod.pod_level_resources;
  for (const ContainerAsk& container : pod.asks) alignment.ask.containers.push_back(ask_of(container));
  if (pod.asks.empty()) {
    const bool whole = pod.gpus > 0 && pod.gpu_milli == kWholeGpu;
    alignment.ask.containers.push_back(
        ask_of({"", ContainerKind::kApp, pod.cpu, pod.memory, pod.gpus, pod.gpu_milli, whole}));
  }
  alignment.gpus =
      static_cast<std::int32_t>(topology::pod_total(alignment.ask, [](const topology::ContainerAsk& container) {
        return container.devices.empty() ? 0 : container.devices.front().count;
      }));
  return alignment;
}

AlignmentId AlignmentTable::intern(const PodRequest& pod) {
  PodAlignment alignment = alignment_of(pod);
  const auto [entry, added] =
      ids_.try_emplace(key_of(alignment), AlignmentId{static_cast<std::uint32_t>(entries_.size())});
  if (added) entries_.push_back(std::move(alignment));
  return entry->second;
}

}  // namespace mortise::placement
