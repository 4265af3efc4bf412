#pragma once

#include <string>
#include <vector>

#include "scheduler/base/result.h"
#include "scheduler/kube/objects/gang_objects.h"
#include "scheduler/kube/objects/pod.h"

namespace mortise::sim {

/// The most pods of a manifest.
inline constexpr std::size_t kMaxManifestPods = 100'000;

struct ManifestPod {
  kube::Pod pod;
  std::string where;  ///< the start of messages about it: file and, where known, line
};

/// What a file of Kubernetes objects asks for.
struct Manifest {
  std::vector<ManifestPod> pods;  ///< in the order of the file; none that has ended
  kube::GroupObjects objects;     ///< those that may say how large a gang is
  std::vector<std::string> notes;
};

/// Reads Pods and the objects that say how large their gangs are, alone or in Lists, from JSON or YAML. Where the file
/// has no Pod, those are made that the controllers of its workloads would make (workload_pods.h). An error names file
/// and line.
Result<Manifest> read_manifest(const std::string& path);
/// The same from its text; `file` is only for messages.
Result<Manifest> parse_manifest(const std::string& text, const std::string& file);

}  // namespace mortise::sim
