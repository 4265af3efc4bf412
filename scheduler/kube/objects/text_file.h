#pragma once

#include <string>

#include "scheduler/base/result.h"

namespace mortise::kube {

/// The whole content of a file. The error names the file.
Result<std::string> read_text_file(const std::string& path);

}  // namespace mortise::kube
