#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/catalogue.h"

namespace mortise::topology {

/// The folder of the machine catalogue: `given`, or if that is empty the one beside the installed program, else the
/// one in the source tree it was built from.
std::filesystem::path catalogue_folder(const std::string& given);

/// The catalogue, read when it is first asked for: a folder that is missing or broken matters only to those who need
/// it.
class LazyCatalogue {
 public:
  explicit LazyCatalogue(std::string folder) : folder_(std::move(folder)) {}

  Result<const Catalogue*> get();
  /// Null as long as nobody has asked for it.
  const Catalogue* loaded() const { return loaded_ && loaded_->ok() ? &**loaded_ : nullptr; }

 private:
  std::string folder_;
  std::optional<Result<Catalogue>> loaded_;
};

}  // namespace mortise::topology
