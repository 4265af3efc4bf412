#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/base/units.h"
#include "scheduler/topology/index_set.h"
#include "scheduler/topology/node_state.h"

namespace mortise::topology {

enum class QosClass { kGuaranteed, kBurstable, kBestEffort };

enum class ContainerRole {
  kApp,
  kInit,
  kSidecar,  ///< an init container with restartPolicy Always
};

/// A limit on a resource of NodeState::devices. An explicit 0 is not the same as no ask: it makes hints.
struct DeviceAsk {
  std::size_t resource = 0;
  std::int64_t count = 0;
};

struct MemoryAsk {
  std::size_t type = 0;
  Bytes size = 0;
};

struct AssignedDevices {
  std::size_t resource = 0;
  IndexSet devices;
};

/// What a container already holds from kubelet's checkpoints after a restart.
struct Assigned {
  std::vector<AssignedDevices> devices;
  std::optional<IndexSet> cpus;
  std::vector<MemoryBlock> memory;
};

struct ContainerAsk {
  std::string name;
  ContainerRole role = ContainerRole::kApp;
  MilliCpu cpu = 0;                ///< request
  std::vector<DeviceAsk> devices;  ///< limits, by ascending resource
  std::vector<MemoryAsk> memory;   ///< requests of memory and hugepages, by ascending type
  Assigned assigned;
};

struct PodAsk {
  QosClass qos = QosClass::kBestEffort;
  /// The pod sets spec.resources: without the feature PodLevelResourceManagers its CPUs and memory are not aligned.
  bool pod_level_resources = false;
  /// Init containers and sidecars first, in declared order, then the app containers.
  std::vector<ContainerAsk> containers;
};

/// Kubelet's pod-level number for one resource: the sum of app containers and sidecars, or, if that is more, the most
/// that an init container and the sidecars before it ask. `of(container)` is one container's ask.
template <class Of>
std::int64_t pod_total(const PodAsk& pod, Of&& of) {
  std::int64_t apps = 0;
  std::int64_t sidecars = 0;
  std::int64_t most = 0;
  for (const ContainerAsk& container : pod.containers) {
    const std::int64_t ask = of(container);
    if (container.role == ContainerRole::kApp) {
      apps += ask;
    } else if (container.role == ContainerRole::kSidecar) {
      sidecars += ask;
    } else if (sidecars + ask > most) {
      most = sidecars + ask;
    }
  }
  return apps + sidecars > most ? apps + sidecars : most;
}

}  // namespace mortise::topology
