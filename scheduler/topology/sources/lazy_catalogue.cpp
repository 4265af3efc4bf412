#include "scheduler/topology/sources/lazy_catalogue.h"

#include <system_error>

namespace mortise::topology {

std::filesystem::path catalogue_folder(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed = program.parent_path().parent_path() / "share" / "mortise" / "topologies";
  if (!error && std::filesystem::is_directory(installed, error)) return installed;
  return MORTISE_CATALOGUE_DIR;
}

Result<const Catalogue*> LazyCatalogue::get() {
  if (!loaded_) loaded_ = Catalogue::load(catalogue_folder(folder_));
  if (!*loaded_) return Error{loaded_->message() + " (option --catalogue)"};
  return &**loaded_;
}

}  // namespace mortise::topology
