#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/extender/gangs.h"

namespace mortise::extender {

/// The latest pod of this name that is a member of a gang and not bound, as GET /v1/explain tells of it; null: none is.
nlohmann::ordered_json member_json(const Gangs& gangs, const Bookings& bookings, std::string_view ns,
                                   std::string_view name, Nanoseconds now);

/// All gangs as GET /v1/gangs tells of them, in the order of their keys.
nlohmann::ordered_json gangs_json(const Gangs& gangs, const Bookings& bookings, Nanoseconds now);

/// A gang in a line for people.
struct GangLine {
  std::string name;
  std::string state;
  std::string members;  ///< by what they hold
  std::string waits_for;
};
/// The first so many by key, those that run and have finished left out.
std::vector<GangLine> gangs_at_work(const Gangs& gangs, const Bookings& bookings, Nanoseconds now, std::size_t most);

}  // namespace mortise::extender
