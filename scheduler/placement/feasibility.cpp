#include "scheduler/placement/feasibility.h"

#include <algorithm>

namespace mortise::placement {

namespace {
bool devices_suffice(const NodeState& state, const Machine& machine, const PodShape& pod) {
  if (!pod.wants_gpu()) return true;
  // Some of the free ones may be the lost ones; kube-scheduler, too, counts what is used against what is healthy.
  if (machine.gpus_lost > 0 && state.whole_free() - machine.gpus_lost < pod.gpus) return false;
  const auto free = state.free_devices();
  const auto enough = std::count_if(free.begin(), free.end(), [&](std::int16_t left) { return left >= pod.gpu_milli; });
  return enough >= pod.gpus;
}
}  // namespace

Reason feasibility(const NodeState& state, const Machine& machine, const PodShape& pod) {
  if (!machine.schedulable) return Reason::kCordoned;
  if (pod.wants_gpu()) {
    if (machine.gpus == 0) return Reason::kNoGpu;
    if (machine.gpus < pod.gpus) return Reason::kTooFewGpus;
    if (!pod.allows(machine.model)) return Reason::kGpuModel;
    if (machine.blocked) return Reason::kNodeBlocked;
  }
  if (machine.cpu < pod.cpu || machine.memory < pod.memory || machine.pods < 1) return Reason::kNodeTooSmall;
  if (!devices_suffice(state, machine, pod)) return Reason::kInsufficientGpu;
  if (state.cpu_free < pod.cpu) return Reason::kInsufficientCpu;
  if (state.memory_free < pod.memory) return Reason::kInsufficientMemory;
  if (state.pods_free < 1) return Reason::kTooManyPods;
  return Reason::kNone;
}

}  // namespace mortise::placement
