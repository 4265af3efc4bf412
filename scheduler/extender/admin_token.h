#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "scheduler/base/result.h"

namespace mortise::extender {

/// A secret in a file, for those who may see names of pods. Read anew for each request, so that it may be changed.
class AdminToken {
 public:
  explicit AdminToken(std::string path) : path_(std::move(path)) {}

  /// Why the file cannot be used.
  Status check() const;
  /// Whether an Authorization header holds the token. Nobody is let in while the file cannot be used.
  bool admits(std::string_view authorization) const;

 private:
  Result<std::string> read() const;

  std::string path_;
};

}  // namespace mortise::extender
