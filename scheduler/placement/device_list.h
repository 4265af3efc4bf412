#pragma once

#include <string>

#include "scheduler/placement/device_set.h"

namespace mortise::placement {

/// `0,1,4`; empty for none.
std::string device_list(const DeviceSet& devices);

}  // namespace mortise::placement
