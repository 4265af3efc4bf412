#include "scheduler/placement/request.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace mortise::placement {
namespace {

/// Sum of two amounts that are not negative; stays at the top of the range, where no node can meet it anyway.
std::int64_t add(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kTop = std::numeric_limits<std::int64_t>::max();
  return a > kTop - b ? kTop : a + b;
}

/// The most that is held at one time: init containers run one after another beside the sidecars started so far, then
/// all app containers beside all sidecars.
template <class AmountOf>
std::int64_t peak(std::span<const ContainerAsk> asks, AmountOf amount_of) {
  std::int64_t staying = 0;
  std::int64_t starting = 0;
  for (const ContainerAsk& ask : asks) {
    if (ask.kind == ContainerKind::kInit) {
      starting = std::max(starting, add(staying, amount_of(ask)));
    } else {
      staying = add(staying, amount_of(ask));
    }
  }
  return std::max(starting, staying);
}

}  // namespace

Status count_containers(std::span<const ContainerAsk> asks, PodRequest& pod) {
  std::vector<ContainerGpus> containers;
  MilliGpu smallest = kWholeGpu;
  MilliGpu largest = 0;
  for (const ContainerAsk& ask : asks) {
    if (ask.gpus == 0) continue;
    containers.push_back({ask.name, ask.kind, ask.gpus});
    smallest = std::min(smallest, ask.gpu_milli);
    largest = std::max(largest, ask.gpu_milli);
  }
  const std::int64_t gpus = peak(asks, [](const ContainerAsk& ask) { return std::int64_t{ask.gpus}; });
  // One container after another may use one share; anything else leaves open which devices hold what.
  if (containers.size() > 1 && smallest < kWholeGpu && (gpus > 1 || largest == kWholeGpu)) {
    return Error{
        "the containers of the pod mix a share of a GPU with other GPU requests; ask for whole GPUs, or for one "
        "share in one container"};
  }

  pod.cpu = peak(asks, [](const ContainerAsk& ask) { return ask.cpu; });
  pod.memory = peak(asks, [](const ContainerAsk& ask) { return ask.memory; });
  pod.gpus = static_cast<std::int32_t>(std::min<std::int64_t>(gpus, std::numeric_limits<std::int32_t>::max()));
  pod.gpu_milli = gpus == 0 ? kWholeGpu : largest;
  pod.containers = std::move(containers);
  pod.asks.assign(asks.begin(), asks.end());
  return ok_status();
}

std::vector<ContainerDevices> split_devices(const PodRequest& pod, const DeviceSet& devices) {
  if (pod.containers.empty()) {
    if (devices.empty()) return {};
    return {{"", devices}};
  }
  std::vector<int> ascending;
  devices.for_each([&](int device) { ascending.push_back(device); });

  std::vector<ContainerDevices> parts;
  std::size_t taken = 0;
  for (const ContainerGpus& container : pod.containers) {
    const std::size_t end = std::min(ascending.size(), taken + static_cast<std::size_t>(container.gpus));
    ContainerDevices& part = parts.emplace_back(ContainerDevices{container.name, {}});
    for (std::size_t i = taken; i < end; ++i) part.devices.insert(ascending[i]);
    if (container.kind != ContainerKind::kInit) taken = end;
  }
  return parts;
}

}  // namespace mortise::placement
