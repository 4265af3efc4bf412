#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

/// Where the test data beside the repository lies, if it is there: MORTISE_SHARED, else ../shared.
inline std::optional<std::filesystem::path> shared_dir() {
  const char* named = std::getenv("MORTISE_SHARED");
  const std::filesystem::path dir = named != nullptr ? named : MORTISE_SOURCE_DIR "/../shared";
  std::error_code ignored;
  if (!std::filesystem::is_directory(dir, ignored)) return std::nullopt;
  return dir;
}
