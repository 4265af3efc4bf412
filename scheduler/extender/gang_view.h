#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scheduler/extender/gangs.h"

namespace mortise::extender {

/// All gangs as GET /v1/gangs tells of them, in the order of their keys.
nlohmann::ordered_json gangs_json(const Gangs& gangs, const Bookings& bookings, Nanoseconds now);

}  // namespace mortise::extender
