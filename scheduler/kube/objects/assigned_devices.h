#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/placement/device_set.h"
#include "scheduler/placement/request.h"

namespace mortise::kube {

/// Pod annotation with the devices a pod was given, per container: {"main":["0","1"]}, or UUIDs.
inline constexpr std::string_view kAssignedDevicesAnnotation = "mortise.dev/assigned-devices";

struct AssignedDevices {
  placement::DeviceSet devices;  ///< of all containers together
  bool by_uuid = false;          ///< some are named by UUID; `devices` is not complete
};

/// The annotation's value for what placement gave the containers.
std::string assigned_devices_text(const std::vector<placement::ContainerDevices>& containers);

Result<AssignedDevices> parse_assigned_devices(std::string_view annotation);

}  // namespace mortise::kube
