#include "sim/files.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

namespace mortise::sim {

namespace fs = std::filesystem;

namespace {

Error cannot(std::string_view verb, const fs::path& path, int code) {
  return Error{fmt::format("{}: cannot {}: {}", path.string(), verb, std::generic_category().message(code))};
}

/// Beside the target, so that the rename stays within one file system.
fs::path temporary_for(const fs::path& path) {
  fs::path temporary = path;
  temporary += fmt::format(".tmp-{}", getpid());
  return temporary;
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return Error{fmt::format("{}: is a folder; allowed: a file", path.string())};
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return cannot("read", path, errno);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return cannot("read", path, errno);
  return text;
}

Status write_file_atomically(const fs::path& path, std::string_view text) {
  const fs::path temporary = temporary_for(path);
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) return cannot("write", path, errno);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  const int write_error = errno;
  std::error_code error;
  if (out) {
    fs::rename(temporary, path, error);
    if (!error) return ok_status();
  }
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return cannot("write", path, error ? error.value() : write_error);
}

Status ensure_writable_dir(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return cannot("make the folder", dir, error.value());
  if (!fs::is_directory(dir, error)) return Error{fmt::format("{}: is not a folder", dir.string())};
  if (access(dir.c_str(), W_OK | X_OK) != 0) return cannot("write into", dir, errno);
  return ok_status();
}

}  // namespace mortise::sim
