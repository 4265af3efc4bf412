#include "scheduler/placement/device_list.h"

namespace mortise::placement {

std::string device_list(const DeviceSet& devices) {
  std::string text;
  devices.for_each([&](int device) { text += (text.empty() ? "" : ",") + std::to_string(device); });
  return text;
}

}  // namespace mortise::placement
