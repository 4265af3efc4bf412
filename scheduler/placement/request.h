#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/base/units.h"
#include "scheduler/placement/alignment.h"
#include "scheduler/placement/device_set.h"

namespace mortise::placement {

enum class ContainerKind {
  kApp,
  kInit,
  kSidecar,  ///< an init container with restartPolicy Always: it stays beside the app containers
};

/// What one container asks for; requests, else limits.
struct ContainerAsk {
  std::string name;
  ContainerKind kind = ContainerKind::kApp;
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t gpus = 0;           ///< devices
  MilliGpu gpu_milli = kWholeGpu;  ///< share of each device, 1..1000
  /// Names the GPUs that kubelet hands out, be it with 0, which is not the same as no ask: kubelet aligns it.
  bool kubelet_gpus = false;
};

/// A container's part of the pod's devices.
struct ContainerGpus {
  std::string name;
  ContainerKind kind = ContainerKind::kApp;
  std::int32_t gpus = 0;
};

/// What a pod asks for, counted once for the whole pod.
struct PodRequest {
  std::string ns;
  std::string name;
  std::string uid;
  std::int32_t priority = 0;  ///< who may evict whom; of no meaning for where it fits
  MilliCpu cpu = 0;
  Bytes memory = 0;
  std::int32_t gpus = 0;
  MilliGpu gpu_milli = kWholeGpu;         ///< share of each GPU, 1..1000; of no meaning when gpus is 0
  std::vector<std::string> models;        ///< allowed GPU models, sorted; empty: any
  std::vector<ContainerGpus> containers;  ///< those with GPUs, in declaration order; empty: one unnamed container
  std::vector<ContainerAsk> asks;         ///< all of them, init containers first; empty: one container asks for all
  topology::QosClass qos = topology::QosClass::kGuaranteed;  ///< of a trace's pods: not told, taken as Guaranteed
  bool pod_level_resources = false;                          ///< spec.resources is set
  topology::TopologyPolicy topology_policy = topology::TopologyPolicy::kNone;  ///< asked for by the pod: at least this
  NvlinkWish nvlink = NvlinkWish::kPreferred;
};

/// Kubernetes' counting rule per resource (KEP-753): max(sum of app containers and sidecars, max over ordinary init
/// containers of that one plus the sidecars declared before it). `asks` holds init containers first, in declaration
/// order. Fills cpu, memory, gpus, gpu_milli, containers and asks of `pod`. Refuses a pod that mixes shares of a GPU
/// with other GPU requests: which devices it would hold is not determined (containers that run one after another
/// may use the same share).
Status count_containers(std::span<const ContainerAsk> asks, PodRequest& pod);

struct ContainerDevices {
  std::string container;
  DeviceSet devices;
};

/// Divides a pod's devices among its containers in declaration order, lowest index first. Ordinary init
/// containers run alone before the others, so they take theirs from the same devices (beside earlier sidecars').
std::vector<ContainerDevices> split_devices(const PodRequest& pod, const DeviceSet& devices);

}  // namespace mortise::placement
