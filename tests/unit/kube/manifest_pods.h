#pragma once

#include <string>
#include <vector>

#include "scheduler/base/result.h"

namespace mortise::test {

/// What a cluster holds after a manifest was applied and its controllers have made their pods.
struct AppliedManifest {
  std::vector<std::string> pods;         ///< as JSON
  std::vector<std::string> objects;      ///< those that may say how large a gang is, made ones too
  std::vector<std::string> not_handled;  ///< kinds whose pods are not known here
};

/// Makes the pods as each controller does, with the labels, annotations and owners that its documentation or source
/// names. Templates' placeholders are filled in with 2.
Result<AppliedManifest> apply_manifest(std::string text, const std::string& file);

}  // namespace mortise::test
