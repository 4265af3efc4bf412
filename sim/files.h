#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "scheduler/base/result.h"

namespace mortise::sim {

/// The bytes of a file; an error names it.
Result<std::string> read_file(const std::filesystem::path& path);

/// Writes all or nothing: a reader sees the old file or the new one, never a part.
Status write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Makes the folder with its parents where it is missing, and proves that files can be made in it.
Status ensure_writable_dir(const std::filesystem::path& dir);

}  // namespace mortise::sim
