#include "scheduler/kube/objects/text_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace mortise::kube {

Result<std::string> read_text_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Error{path + ": is a folder, not a file"};
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{path + ": cannot be read: " + std::generic_category().message(errno)};
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return Error{path + ": cannot be read to its end"};
  return std::move(text).str();
}

}  // namespace mortise::kube
