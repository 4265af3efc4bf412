#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/support/tree.h"

namespace mortise::test {

/// The folder of published test data beside the repository (or where MORTISE_SHARED says); empty when absent.
inline std::optional<std::filesystem::path> shared_dir() {
  const char* set = std::getenv("MORTISE_SHARED");
  const std::filesystem::path path = set != nullptr ? set : mortise::test::source_dir() + "/../shared";
  if (!std::filesystem::is_directory(path)) return std::nullopt;
  return path;
}

}  // namespace mortise::test
