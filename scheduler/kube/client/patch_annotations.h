#pragma once

#include <map>
#include <optional>
#include <string>

#include "scheduler/kube/client/answer.h"
#include "scheduler/kube/client/watch_event.h"

namespace mortise::kube {

struct AnnotationPatch {
  std::string path;              ///< of the object, as resource_path() makes it
  std::string uid;               ///< another object of that name is then refused; empty: any
  std::string resource_version;  ///< a later state is then refused; empty: any
  std::map<std::string, std::optional<std::string>> annotations;  ///< empty value: taken away; others stay as they are
};

/// Sets and removes annotations of one object; gives its new resource version. kConflict: another UID, or changed since
/// the resource version given.
Answer<ObjectName> patch_annotations(ApiClient& client, const AnnotationPatch& patch, const CallOptions& call = {});

}  // namespace mortise::kube
