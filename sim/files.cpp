#include "sim/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace mortise::sim {

namespace fs = std::filesystem;

namespace {

Error cannot(std::string_view verb, const fs::path& path, int code) {
  return Error{fmt::format("{}: cannot {}: {}", path.string(), verb, std::generic_category().message(code))};
}

Status write_directly(const fs::path& path, const std::function<Status(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) {
    if (Status status = write(out); !status) return status;
    out.close();
  }
  if (!out) return cannot("write", path, errno == 0 ? EIO : errno);
  return ok_status();
}

}  // namespace

Status check_input(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return Error{fmt::format("{}: is a folder; allowed: a file", path.string())};
  if (error) return cannot("read", path, error.value());
  return ok_status();
}

Result<std::string> read_file(const fs::path& path) {
  if (const Status status = check_input(path); !status) return status.error();
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return cannot("read", path, errno);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return cannot("read", path, errno == 0 ? EIO : errno);
  return text;
}

Status check_output(const fs::path& output, std::span<const std::string> inputs) {
  std::error_code ignored;
  if (fs::is_directory(output, ignored)) {
    return Error{fmt::format("{}: is a folder; allowed: a file", output.string())};
  }
  for (const std::string& input : inputs) {
    if (output != input && !fs::equivalent(output, input, ignored)) continue;
    return Error{fmt::format("{}: is named as input and as output; allowed: two files", output.string())};
  }
  return ok_status();
}

Status write_file(const fs::path& path, const std::function<Status(std::ostream&)>& write) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_directly(path, write);
  // A link stays a link; and the temporary file stands beside the target, so that the rename cannot cross devices.
  const fs::path target = fs::exists(status) ? fs::canonical(path, error) : path;
  fs::path temporary = target;
  temporary += fmt::format(".tmp-{}", getpid());
  Status written = write_directly(temporary, write);
  if (written) {
    fs::rename(temporary, target, error);
    if (!error) return written;
    written = cannot("write", path, error.value());
  }
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return written;
}

Status ensure_writable_dir(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return cannot("make the folder", dir, error.value());
  if (access(dir.c_str(), W_OK | X_OK) != 0) return cannot("write into", dir, errno);
  return ok_status();
}

}  // namespace mortise::sim
