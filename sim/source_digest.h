#pragma once

#include <string_view>

namespace mortise::sim {

/// Stands for the sources that decide a simulation's result. It is part of the key of stored runs, so that a changed
/// policy is never answered with old results. The build generates it (source_digest.cmake).
std::string_view source_digest();

}  // namespace mortise::sim
