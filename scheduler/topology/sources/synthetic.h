#pragma once

#include <string>
#include <string_view>

#include "scheduler/base/result.h"
#include "scheduler/topology/sources/source.h"

namespace mortise::topology {

bool looks_like_synthetic(std::string_view text);

/// Reads the one-line form: blank-separated `name:value` items, each at most once. docs/topology.md has the grammar.
///   socket numa bridge cascade switch   levels from the outside in: how many in each of the level above
///   gpu nic      how many on each innermost level; or `COUNT@PLACE,...` by position of the innermost level
///   cpu memory distance gpumem          of the NUMA nodes
///   model nvlink nvswitch               of the GPUs
///   policy scope                        of kubelet
Result<Reading> read_synthetic(std::string_view text, std::string_view file);

/// The same machine as text, in one form. Refuses machines that the form cannot express.
Result<std::string> to_synthetic(const Machine& machine);

}  // namespace mortise::topology
