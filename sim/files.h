#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>

#include "scheduler/base/result.h"

namespace mortise::sim {

/// An error that names the path when it is missing or a folder.
Status check_input(const std::filesystem::path& path);

/// The bytes of a file.
Result<std::string> read_file(const std::filesystem::path& path);

/// Refuses an output that is one of the inputs: it would be destroyed.
Status check_output(const std::filesystem::path& output, std::span<const std::string> inputs);

/// Writes all or nothing: a reader sees the old file or the new one, never a part. What is not a regular file (a
/// device, a pipe) is written to directly. An error of `write` is passed on.
Status write_file(const std::filesystem::path& path, const std::function<Status(std::ostream&)>& write);

/// Makes the folder with its parents where it is missing; an error when files cannot be made in it.
Status ensure_writable_dir(const std::filesystem::path& dir);

}  // namespace mortise::sim
